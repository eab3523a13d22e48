import "../system/gateway-tls.test.ts";

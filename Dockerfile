# docker build -t runvault . && docker run -v runvault:/archive -e RUNVAULT_GATEWAY=… runvault archive --all --finished
FROM node:24.21.0-bookworm-slim AS package
WORKDIR /src
COPY . .
RUN npm ci && npm pack --pack-destination /tmp

FROM node:24.21.0-bookworm-slim
COPY --from=package /tmp/runvault-*.tgz /tmp/
RUN npm install -g /tmp/runvault-*.tgz \
  && rm /tmp/runvault-*.tgz \
  && install -d -o node -g node -m 0700 /archive
ENV RUNVAULT_ARCHIVE=/archive
VOLUME /archive
USER 1000:1000
WORKDIR /home/node
# unhealthy once no job has succeeded for a day and two hours; a container that only serves wants --no-healthcheck
HEALTHCHECK --interval=5m --timeout=30s --start-period=26h CMD ["runvault", "status", "--max-age", "26h"]
ENTRYPOINT ["runvault"]
CMD ["--help"]

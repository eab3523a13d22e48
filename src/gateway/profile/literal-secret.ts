/** Parameter names that gateways use for keys. */
const secretName =
  /(?:^|[^a-z])(?:api[^a-z]?keys?|apikey|access[^a-z]?key|auth|authorization|bearer|credentials?|jwt|keys?|pass(?:word|wd|phrase)?|private[^a-z]?key|pwd|secret|sig|signature|token)$/;

/** Whether a parameter probably carries a key, by its name. */
export function isSecretName(name: string): boolean {
  // apiKey and api_key are the same name
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
  return secretName.test(words);
}

/** Whether a text looks like a key or token rather than a word that someone would type. */
export function looksSecret(text: string): boolean {
  if (/^eyJ[A-Za-z0-9_-]{8,}/.test(text) || /^(?:sk|pk|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{10,}/.test(text))
    return true;
  return (
    /^[A-Za-z0-9+/_=-]{20,}$/.test(text) &&
    /\d/.test(text) &&
    /[A-Za-z]/.test(text) &&
    text.split(/[-_]/).some((part) => part.length >= 16 && /\d/.test(part) && /[A-Za-z]/.test(part))
  );
}

/** Whether a path contains a key: a part that looks like one or follows a word such as token. */
export function holdsSecret(path: string): boolean {
  const parts = path.split(/[/;?&]/);
  return parts.some((part, index) => {
    const [name = "", value] = part.split("=");
    if (value !== undefined && value !== "" && isSecretName(name)) return true;
    if (part.startsWith("{")) return false;
    return (
      looksSecret(value ?? part) ||
      (index > 0 && part.length >= 8 && /\d/.test(part) && isSecretName(parts[index - 1] ?? ""))
    );
  });
}

"""Converts openshift_master_identity_providers to oauthConfig.identityProviders.

openshift-ansible writes the keys of a provider next to `name`, `login` and `challenge`, often as
strings. In master-config.yaml, they are in the object `provider`.
"""

from ansible.errors import AnsibleFilterError

OWN_KEYS = {"name", "login", "challenge", "mappingMethod", "mapping_method"}


def typed(value):
    """Returns a value with booleans in place of the strings `true` and `false`."""
    if isinstance(value, dict):
        return {str(key): typed(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [typed(entry) for entry in value]
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return str(value) if isinstance(value, str) else value


def identity_providers(providers, htpasswd_file):
    """Returns the identity providers in the format of master-config.yaml."""
    if not isinstance(providers, list):
        raise AnsibleFilterError("openshift_master_identity_providers must be a list")
    result = []
    for entry in providers:
        for key in ("name", "kind"):
            if not isinstance(entry, dict) or not entry.get(key):
                raise AnsibleFilterError("openshift_master_identity_providers: each provider needs a %s" % key)
        entry = typed(entry)
        provider = {"apiVersion": "v1"}
        provider.update((key, value) for key, value in entry.items() if key not in OWN_KEYS)
        if provider["kind"] == "HTPasswdPasswordIdentityProvider":
            provider["file"] = provider.pop("filename", None) or provider.get("file") or str(htpasswd_file)
        result.append({
            "name": entry["name"],
            "login": entry.get("login", True),
            "challenge": entry.get("challenge", True),
            "mappingMethod": entry.get("mappingMethod") or entry.get("mapping_method") or "claim",
            "provider": provider,
        })
    return result


class FilterModule:
    """The filter slipway_identity_providers."""

    def filters(self):
        return {"slipway_identity_providers": identity_providers}

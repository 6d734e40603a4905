"""Checks the inventory of a cluster: its groups, and the variables of openshift-ansible 3.11.

The result fails with all errors together. Variables and groups without effect are warnings, which
Ansible also prints at the end. A variable has an effect if docs/admin/ansible.md lists it.
"""

from ansible.plugins.action import ActionBase

GROUPS = {"OSEv3", "masters", "nodes", "etcd", "lb", "new_masters", "new_nodes", "new_etcd"}
OTHER_GROUPS = {"glusterfs", "glusterfs_registry", "nfs"}

# Variables that the playbooks read.
EFFECTIVE = {
    "openshift_deployment_type", "openshift_release", "openshift_hostname", "openshift_ip",
    "openshift_node_group_name", "openshift_node_groups", "openshift_schedulable",
    "openshift_master_api_port", "openshift_master_cluster_hostname", "openshift_master_cluster_method",
    "openshift_master_cluster_public_hostname", "openshift_master_default_subdomain",
    "openshift_master_htpasswd_file", "openshift_master_htpasswd_users", "openshift_master_identity_providers",
    "openshift_portal_net", "openshift_upgrade_nodes_serial", "osm_cluster_network_cidr", "osm_host_subnet_length",
    "os_sdn_network_plugin_name", "osm_use_cockpit", "osm_cockpit_plugins",
}

# Prefixes of openshift-ansible's variables.
PREFIXES = (
    "openshift", "osm_", "os_", "oreg_", "etcd_", "docker_", "containerized", "debug_level",
    "r_openshift", "template_service_broker", "ansible_service_broker", "logrotate_", "osn_",
)

# Variables that accept only a few values.
VALUES = {
    "openshift_deployment_type": {"origin", "openshift-enterprise"},
    "openshift_master_cluster_method": {"native"},
    "openshift_schedulable": {"true", "false", "yes", "no"},
    "osm_use_cockpit": {"true", "false", "yes", "no"},
}


def warnings_of(host, variables):
    """Returns the warnings about a host's variables (a dictionary)."""
    for name in sorted(variables):
        # Ansible itself sets a variable with this name.
        if name.startswith(PREFIXES) and name not in EFFECTIVE:
            yield name, host
    release = str(variables.get("openshift_release", "3.11")).lstrip("v")
    if release != "3.11" and not release.startswith("3.11."):
        yield "openshift_release=%s (the cluster is compatible with 3.11)" % release, host


def errors_of(host, variables):
    """Returns the errors in a host's variables (a dictionary)."""
    for name, values in sorted(VALUES.items()):
        value = str(variables.get(name, "")).lower()
        if value and value not in values:
            yield "host %s: %s is %r; use %s" % (host, name, value, " or ".join(sorted(values)))


def group_errors(groups):
    """Returns the errors in the groups (a dictionary of host lists)."""
    masters = groups.get("masters", [])
    every_master = set(masters) | set(groups.get("new_masters", []))
    if not masters:
        yield "the group [masters] has no host: name at least one master"
    for host in sorted(set(groups.get("etcd", [])) - every_master - set(groups.get("new_etcd", []))):
        yield "host %s: etcd runs on masters: add the host to [masters], or remove it from [etcd]" % host
    for host in sorted(every_master & set(groups.get("lb", []))):
        yield "host %s: a master cannot be its own load balancer: remove it from [lb]" % host
    for new, old in (("new_masters", "masters"), ("new_nodes", "nodes"), ("new_etcd", "etcd")):
        for host in sorted(set(groups.get(new, [])) & set(groups.get(old, []))):
            yield "host %s: it is in [%s] and in [%s]: remove it from one" % (host, old, new)


class ActionModule(ActionBase):
    """The action slipway_inventory, without arguments."""

    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        groups, hostvars = task_vars["groups"], task_vars["hostvars"]
        errors, hosts_by_text = list(group_errors(groups)), {}
        for host in sorted(set(groups["all"])):
            variables = hostvars[host]
            known = {name: variables[name] for name in variables if name in EFFECTIVE or name.startswith(PREFIXES)}
            errors.extend(errors_of(host, known))
            for text, place in warnings_of(host, known):
                hosts_by_text.setdefault(text, []).append(place)
        unused = {"variable " + text: ", ".join(hosts) for text, hosts in sorted(hosts_by_text.items())}
        unused.update(("group [%s]" % name, "") for name in sorted(OTHER_GROUPS & set(groups)))
        result["warnings"] = [name + " has no effect" + (" (%s)" % hosts if hosts else "") for name, hosts in unused.items()]
        if unused:
            # Ansible prints these statistics after the recap (show_custom_stats in ansible.cfg).
            result["ansible_stats"] = {"data": {"without effect": unused}, "per_host": False, "aggregate": True}
        result.update(changed=False, failed=bool(errors))
        if errors:
            result["msg"] = "the inventory is not valid:\n" + "\n".join(errors)
        return result

#!/usr/bin/python3
"""Tells the broker what the bundle does now; the catalog shows it.

    - asb_last_operation:
        description: creating the database
"""
from ansible.module_utils.asb import annotate
from ansible.module_utils.basic import AnsibleModule


def main():
    module = AnsibleModule({"description": {"type": "str", "required": True}})
    try:
        annotate("apb_last_operation", module.params["description"])
    except (OSError, KeyError) as error:
        module.fail_json(msg="annotate pod: {}".format(error))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()

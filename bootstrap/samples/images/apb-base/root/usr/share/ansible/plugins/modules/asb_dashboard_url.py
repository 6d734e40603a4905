#!/usr/bin/python3
"""Tells the broker the address of a user interface of the instance.

    - asb_dashboard_url:
        dashboard_url: http://app.example.com/
"""
from ansible.module_utils.asb import annotate
from ansible.module_utils.basic import AnsibleModule


def main():
    module = AnsibleModule({"dashboard_url": {"type": "str", "required": True}})
    try:
        annotate("apb_dashboard_url", module.params["dashboard_url"])
    except (OSError, KeyError) as error:
        module.fail_json(msg="annotate pod: {}".format(error))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()

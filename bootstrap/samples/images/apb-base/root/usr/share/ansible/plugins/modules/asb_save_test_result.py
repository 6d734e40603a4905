#!/usr/bin/python3
"""Stores the result of the playbook test.

    - asb_save_test_result:
        fail: true
        msg: the page does not contain the greeting
"""
import json

from ansible.module_utils.asb import annotate
from ansible.module_utils.basic import AnsibleModule


def main():
    module = AnsibleModule({"fail": {"type": "bool", "default": False}, "msg": {"type": "str", "default": ""}})
    try:
        annotate("apb_test_result", json.dumps({key: module.params[key] for key in ("fail", "msg")}))
    except (OSError, KeyError) as error:
        module.fail_json(msg="annotate pod: {}".format(error))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()

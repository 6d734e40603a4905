#!/bin/bash
# Runs an action's playbook: entrypoint.sh ACTION --extra-vars VARIABLES. VARIABLES is a JSON
# object. Playbooks are in /opt/apb/project or /opt/apb/actions. If the action has no playbook, the
# exit code is 8. The keys of the secrets in /etc/apb-secrets are also variables.
set -eu
action=${1:?the name of an action is missing}
shift
playbook=
for directory in /opt/apb/project /opt/apb/actions; do
	for candidate in $directory/"$action".{yml,yaml}; do
		if [ -z "$playbook" ] && [ -e "$candidate" ]; then playbook=$candidate; fi
	done
done
if [ -z "$playbook" ]; then
	echo "No playbook exists for $action." >&2
	exit 8
fi
values='{}'
if [ "${1-}" = --extra-vars ]; then
	values=${2:?the variables are missing}
	shift 2
fi
variables=$(mktemp)
python3 /usr/libexec/read-variables /etc/apb-secrets "$values" >"$variables"
exec ansible-playbook --connection local --inventory localhost, "$playbook" --extra-vars "@$variables" "$@"

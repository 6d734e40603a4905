package diagnostics

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/kubectl/pkg/cmd/util"
)

// OpenShift 3's flags for checks of hosts and test applications. Flags without a prefix belonged to
// a single check. Flags with a check's name as a prefix belonged to the `all` subcommand.
const (
	oldValues = "admission-timeout aggregatedlogging-logging-project app-image app-name app-port appcreate-admission-timeout appcreate-app-image appcreate-app-name appcreate-app-port appcreate-deploy-timeout appcreate-http-retries appcreate-http-timeout appcreate-node-selector " +
		"appcreate-project appcreate-project-base appcreate-result-dir appcreate-route-host " +
		"appcreate-route-port cluster-context deploy-timeout diaglevel diagnosticpod-images " +
		"duration etcdwritevolume-duration http-retries http-timeout images logdir logging-project " +
		"networkcheck-logdir networkcheck-pod-image networkcheck-test-pod-image networkcheck-test-pod-port networkcheck-test-pod-protocol node-config node-selector pod-image project " +
		"project-base result-dir route-host route-port test-pod-image test-pod-port test-pod-protocol"
	oldSwitches = "appcreate-keep-app appcreate-keep-project appcreate-skip-route-connect appcreate-skip-route-test appcreate-skip-service-connect diagnosticpod-latest-images host keep-app keep-project latest-images skip-route-connect skip-route-test skip-service-connect"
)

// acceptOldFlags adds OpenShift 3's flags as deprecated flags that have no effect.
func acceptOldFlags(flags *pflag.FlagSet) {
	const reason = "it has no effect: the checks read only the API and the kubeconfig"
	for name := range strings.FieldsSeq(oldValues) {
		shorthand := ""
		if name == "diaglevel" {
			shorthand = "l"
		}
		flags.StringP(name, shorthand, "", reason)
		util.CheckErr(flags.MarkDeprecated(name, reason))
	}
	for name := range strings.FieldsSeq(oldSwitches) {
		flags.Bool(name, false, reason)
		util.CheckErr(flags.MarkDeprecated(name, reason))
	}
}

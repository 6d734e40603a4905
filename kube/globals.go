package kube

import (
	"fmt"
	"maps"

	genericfeatures "k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/kubernetes/pkg/features"
)

// Globals sets every upstream process-wide variable that more than one component uses. The control
// plane process and the node process each call it once, before their first component starts. The
// variables are:
//
//   - feature gates (utilfeature.DefaultMutableFeatureGate): all components share one set, so the
//     component configurations do not set feature gates. Otherwise, the last writer would take
//     precedence.
//   - component versions (compatibility.DefaultComponentGlobalsRegistry): the API server registers
//     and freezes them. Components that start later must use the same versions.
//   - the logger (logsapi.ValidateAndApply): applying it a second time in one process is an error,
//     and all components share the format and verbosity.
//   - client-go's default warning handler: the API server's loopback clients must not log warnings
//     that they caused themselves.
//
// The control plane and the node are two processes, because some variables cannot be shared. These
// are the kubelet's metrics collectors and listeners, and the CSI plugin's node name, which both
// the kubelet and the controllers would set.
func Globals(gates map[string]bool) error {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	registry := compatibility.DefaultComponentGlobalsRegistry
	registry.ComponentGlobalsOrRegister(basecompatibility.DefaultKubeComponent,
		compatibility.DefaultBuildEffectiveVersion(), utilfeature.DefaultMutableFeatureGate)
	all := ownGates()
	maps.Copy(all, gates)
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(all); err != nil {
		return fmt.Errorf("set feature gates: %w", err)
	}
	if err := registry.Set(); err != nil {
		return fmt.Errorf("set component versions: %w", err)
	}
	logger := klog.Background()
	logging := logsapi.NewLoggingConfiguration()
	if err := logsapi.ValidateAndApply(logging, utilfeature.DefaultFeatureGate); err != nil {
		return fmt.Errorf("set up logging: %w", err)
	}
	// ValidateAndApply replaces the process's logger, which adds component names to its output and
	// removes secrets. Restore that logger. A process without that logger uses klog's own sink,
	// which has a different type.
	if _, own := logger.GetSink().(textlogger.KlogBufferWriter); own {
		klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	}
	return nil
}

// ownGates returns the feature gates whose values differ from upstream's defaults.
//
// EnvFiles lets the kubelet read a container's file as root to set another container's environment
// variables (fileKeyRef). The kubelet accepts pipes and files of any size. Therefore, a tenant
// could use up the node's memory, or block the kubelet's threads and the deletion of the pod.
//
// ConcurrentWatchObjectDecode starts ten goroutines for each etcd watch, more than the watch's
// other goroutines combined. This is worthwhile only for watches with thousands of changes per
// second.
func ownGates() map[string]bool {
	return map[string]bool{
		string(features.EnvFiles):                           false,
		string(genericfeatures.ConcurrentWatchObjectDecode): false,
	}
}

// Version returns the version of the embedded Kubernetes, for example "v1.37.1".
func Version() string { return version.Get().GitVersion }

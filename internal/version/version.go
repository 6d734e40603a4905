// Package version contains the version of Slipway. kube.Version is the version of the embedded
// Kubernetes.
package version

// slipway is set by the linker (-X). A build without the Makefile is a development build.
var slipway = "v0.0.0-dev"

// Slipway returns the version of this program, for example "v0.1.0".
func Slipway() string { return slipway }

// openShift is the version of OpenShift whose API the server serves and whose commands the client
// has.
const openShift = "v3.11.0"

// OpenShift returns the version of OpenShift and, after a plus sign, the version of this program.
func OpenShift() string { return openShift + "+slipway-" + slipway }

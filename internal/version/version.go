// Package version contains Slipway's version. kube.Version is the version of the embedded
// Kubernetes.
package version

// slipway is set by the linker (-X). A build without the Makefile is a development build.
var slipway = "v0.0.0-dev"

// Slipway returns this program's version, for example "v0.1.0".
func Slipway() string { return slipway }

// openShift is the OpenShift version whose API the server serves and whose commands the client
// provides.
const openShift = "v3.11.0"

// OpenShift returns the OpenShift version, followed by a plus sign and this program's version.
func OpenShift() string { return openShift + "+slipway-" + slipway }

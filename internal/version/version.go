// Package version contains the version of Slipway. kube.Version is the version of the embedded
// Kubernetes.
package version

// slipway is set by the linker (-X). A build without the Makefile is a development build.
var slipway = "v0.0.0-dev"

// Slipway returns the version of this program, for example "v0.1.0".
func Slipway() string { return slipway }

// Package version holds this build's own version. The version of the embedded Kubernetes is a
// different one, kube.Version.
package version

// slipway is set by the linker (-X); a build without the Makefile is a development build.
var slipway = "v0.0.0-dev"

// Slipway is the version of this program, for instance "v0.1.0".
func Slipway() string { return slipway }

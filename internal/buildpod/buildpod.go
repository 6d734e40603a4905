// Package buildpod defines the contract between the build controller and the builder: images,
// paths, variables and arguments in the pod of a build.
package buildpod

import "fmt"

const (
	// Image is the image of the builder. Each node creates it; no registry has it.
	Image = "localhost/slipway-builder:current"
	// Program is the path of the builder in Image.
	Program = "/usr/bin/slipway-builder"
	// Runc is the path of runc in Image.
	Runc = "/usr/bin/runc"
	// ConfineArgument makes the builder only block link-local addresses in the network of the pod.
	ConfineArgument = "confine"
	// FetchArgument makes the builder only fetch the source of a pipeline.
	FetchArgument = "fetch"
)

const (
	// WorkDir is the directory for sources, and for layers that no later build uses.
	WorkDir = "/var/lib/slipway-builder"
	// CacheDir is the volume with the layers and sources of earlier builds. Not every build has it.
	CacheDir = "/var/cache/slipway-builder"
	// SecretsDir contains the mounted secrets. OpenShift's custom builders expect its path and the
	// names in it.
	SecretsDir = "/var/run/secrets/openshift.io"
	// ConfigMapsDir contains the mounted config maps, also as in OpenShift's custom builders.
	ConfigMapsDir = "/var/run/configs/openshift.io"
)

// LibrariesDir is the directory below WorkDir with the bare repositories of a pipeline's private
// libraries. Each has the name of its variable.
const LibrariesDir = "library-repositories"

// Directories below SecretsDir.
const (
	// PushSecret contains credentials for the registry of the output.
	PushSecret = "push"
	// PullSecret contains credentials for the registries of inputs.
	PullSecret = "pull"
	// SourceSecret contains credentials for the Git server.
	SourceSecret = "source"
)

// ImageSecret returns the directory below SecretsDir with the credentials for the image source with
// an index.
func ImageSecret(index int) string { return fmt.Sprintf("source-image/%d", index) }

// Input returns the directory below SecretsDir or ConfigMapsDir of a secret or config map that is
// part of the source.
func Input(name string) string { return "build/" + name }

// Variables of the builder's container.
const (
	// BuildVariable contains the Build object as JSON.
	BuildVariable = "BUILD"
	// VersionVariable contains the version of the platform.
	VersionVariable = "ORIGIN_VERSION"
	// AllowedUIDsVariable contains the user IDs that can run assemble scripts, such as "1-".
	AllowedUIDsVariable = "ALLOWED_UIDS"
	// LogLevelVariable contains the log level, a number.
	LogLevelVariable = "BUILD_LOGLEVEL"
)

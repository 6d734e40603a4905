// Package buildpod defines the contract between the build controller and the builder: images,
// paths, environment variables and arguments in a build's pod.
package buildpod

import "fmt"

const (
	// Image is the builder's image. Each node creates it, because no registry contains it.
	Image = "localhost/slipway-builder:current"
	// Program is the builder's path in Image.
	Program = "/usr/bin/slipway-builder"
	// Runc is runc's path in Image.
	Runc = "/usr/bin/runc"
	// ConfineArgument makes the builder block link-local addresses in the pod's network, and do
	// nothing else.
	ConfineArgument = "confine"
	// FetchArgument makes the builder fetch a pipeline's source, and do nothing else.
	FetchArgument = "fetch"
)

const (
	// WorkDir is the directory for sources, and for layers that later builds do not reuse.
	WorkDir = "/var/lib/slipway-builder"
	// CacheDir is the mount point of the volume that contains layers and sources from earlier
	// builds. Not every build has this volume.
	CacheDir = "/var/cache/slipway-builder"
	// SecretsDir contains the mounted secrets. OpenShift's custom builders expect this path and the
	// names of the files in it.
	SecretsDir = "/var/run/secrets/openshift.io"
	// ConfigMapsDir contains the mounted config maps. OpenShift's custom builders expect this path.
	ConfigMapsDir = "/var/run/configs/openshift.io"
)

// LibrariesDir is the directory below WorkDir that contains the bare repositories of a pipeline's
// private libraries. Each repository is named after the environment variable with the library's
// URL.
const LibrariesDir = "library-repositories"

// Directories below SecretsDir.
const (
	// PushSecret contains credentials for the output's registry.
	PushSecret = "push"
	// PullSecret contains credentials for the inputs' registries.
	PullSecret = "pull"
	// SourceSecret contains credentials for the Git server.
	SourceSecret = "source"
)

// ImageSecret returns the directory below SecretsDir that contains the credentials for the image
// source with the given index.
func ImageSecret(index int) string { return fmt.Sprintf("source-image/%d", index) }

// Input returns the directory below SecretsDir or ConfigMapsDir for a secret or config map that is
// part of the source.
func Input(name string) string { return "build/" + name }

// Environment variables of the builder's container.
const (
	// BuildVariable contains the Build object as JSON.
	BuildVariable = "BUILD"
	// VersionVariable contains the platform's version.
	VersionVariable = "ORIGIN_VERSION"
	// AllowedUIDsVariable contains the user IDs that are allowed to run assemble scripts, such as
	// "1-".
	AllowedUIDsVariable = "ALLOWED_UIDS"
	// LogLevelVariable contains the log level, a number.
	LogLevelVariable = "BUILD_LOGLEVEL"
)

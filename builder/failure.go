package builder

import (
	"errors"

	buildv1 "github.com/openshift/api/build/v1"
)

// failure is an error with the reason that a Build shows for it.
type failure struct {
	reason buildv1.StatusReason
	cause  error
}

func (f failure) Error() string { return f.cause.Error() }
func (f failure) Unwrap() error { return f.cause }

// because gives an error a reason, unless it has one or is none.
func because(reason buildv1.StatusReason, err error) error {
	var known failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	return failure{reason, err}
}

// Reasons that are not among those of the API's package, as OpenShift 3.11 has them.
const (
	reasonAssembleFailed     buildv1.StatusReason = "AssembleFailed"
	reasonFetchScriptsFailed buildv1.StatusReason = "FetchScriptsFailed"
)

// messages say in a sentence what a reason means.
var messages = map[buildv1.StatusReason]string{
	buildv1.StatusReasonFetchSourceFailed:         "Failed to fetch the input source.",
	buildv1.StatusReasonFetchImageContentFailed:   "Failed to fetch input from an image.",
	buildv1.StatusReasonInvalidContextDirectory:   "The context directory does not exist in the source.",
	buildv1.StatusReasonManageDockerfileFailed:    "Failed to prepare the Dockerfile.",
	buildv1.StatusReasonDockerBuildFailed:         "Failed to build the image of the Dockerfile.",
	buildv1.StatusReasonPullBuilderImageFailed:    "Failed to pull the builder image.",
	reasonFetchScriptsFailed:                      "Failed to find the scripts that build the source.",
	reasonAssembleFailed:                          "The assemble script failed.",
	buildv1.StatusReasonPostCommitHookFailed:      "The post-commit hook failed.",
	buildv1.StatusReasonPushImageToRegistryFailed: "Failed to push the image to the registry.",
	buildv1.StatusReasonGenericBuildFailed:        "The build failed; its log says why.",
}

// failed puts into the Build's status why it failed.
func (r *run) failed(err error) {
	known := failure{reason: buildv1.StatusReasonGenericBuildFailed}
	errors.As(err, &known)
	status := &r.Build.Status
	status.Phase, status.Reason, status.Message = buildv1.BuildPhaseFailed, known.reason, messages[known.reason]
}

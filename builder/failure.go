package builder

import (
	"errors"

	buildv1 "github.com/openshift/api/build/v1"
)

// failure is an error with a reason for the Build's status.
type failure struct {
	reason buildv1.StatusReason
	cause  error
}

func (f failure) Error() string { return f.cause.Error() }
func (f failure) Unwrap() error { return f.cause }

// withReason adds a reason to an error that has none.
func withReason(reason buildv1.StatusReason, err error) error {
	var existing failure
	if err == nil || errors.As(err, &existing) {
		return err
	}
	return failure{reason, err}
}

// OpenShift 3.11 reasons that the API package does not define.
const (
	reasonAssembleFailed     buildv1.StatusReason = "AssembleFailed"
	reasonFetchScriptsFailed buildv1.StatusReason = "FetchScriptsFailed"
)

// messages maps each reason to the message in the Build's status.
var messages = map[buildv1.StatusReason]string{
	buildv1.StatusReasonFetchSourceFailed:         "Failed to fetch the input source.",
	buildv1.StatusReasonFetchImageContentFailed:   "Failed to fetch input from an image.",
	buildv1.StatusReasonInvalidContextDirectory:   "The context directory does not exist in the source.",
	buildv1.StatusReasonManageDockerfileFailed:    "Failed to prepare the Dockerfile.",
	buildv1.StatusReasonDockerBuildFailed:         "Failed to build the image from the Dockerfile.",
	buildv1.StatusReasonPullBuilderImageFailed:    "Failed to pull the builder image.",
	reasonFetchScriptsFailed:                      "Failed to find or download the assemble and run scripts.",
	reasonAssembleFailed:                          "The assemble script failed.",
	buildv1.StatusReasonPostCommitHookFailed:      "The post-commit hook failed.",
	buildv1.StatusReasonPushImageToRegistryFailed: "Failed to push the image to the registry.",
	buildv1.StatusReasonGenericBuildFailed:        "The build failed; see the log for the reason.",
}

// setFailed sets the Build's status to failed, with the reason and message for err.
func (r *run) setFailed(err error) {
	f := failure{reason: buildv1.StatusReasonGenericBuildFailed}
	errors.As(err, &f)
	status := &r.Build.Status
	status.Phase, status.Reason, status.Message = buildv1.BuildPhaseFailed, f.reason, messages[f.reason]
}

package builder

import (
	"context"
	"errors"
	"fmt"
	"time"

	gateway "github.com/moby/buildkit/frontend/gateway/client"
	buildv1 "github.com/openshift/api/build/v1"

	"github.com/slipway-platform/slipway/builder/engine"
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// recipe describes how a strategy builds an image.
type recipe struct {
	// step is the step's name in the Build's status.
	step buildv1.StepName
	// solve builds the image. It refers to directories and secrets by their names in dirs and
	// secrets.
	solve   gateway.BuildFunc
	dirs    map[string]string
	secrets map[string][]byte
	// exportCache makes the layers available to the next build.
	exportCache bool
}

// image builds an image, runs the hook in it, and pushes it.
func (r *run) image(ctx context.Context, e *engine.Engine, rec recipe) error {
	var pushStart time.Time
	build := func(ctx context.Context, c gateway.Client) (*gateway.Result, error) {
		var result *gateway.Result
		err := r.timed(buildv1.StageBuild, rec.step, func() (err error) {
			result, err = rec.solve(ctx, c)
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := r.describe(result); err != nil {
			return nil, err
		}
		if err := r.hook(ctx, c, result); err != nil {
			return nil, withReason(buildv1.StatusReasonPostCommitHookFailed, err)
		}
		if pushStart = time.Now(); r.output() != "" {
			fmt.Fprintf(r.Out, "\nPushing image %s ...\n", r.output())
		}
		return result, nil
	}
	digest, err := e.Run(ctx, engine.Job{
		Build: build, Dirs: rec.dirs, Secrets: rec.secrets, Push: r.output(), ExportCache: rec.exportCache,
		Credentials: r.credentialsFor, Out: r.Out, Verbose: r.verbose(),
	})
	if r.output() != "" && !pushStart.IsZero() {
		r.addStep(buildv1.StagePushImage, buildv1.StepPushImage, pushStart, time.Since(pushStart))
	}
	var push *engine.PushError
	switch {
	case errors.As(err, &push):
		return withReason(buildv1.StatusReasonPushImageToRegistryFailed, err)
	case err != nil:
		return err
	case r.output() == "":
		fmt.Fprintln(r.Out, "Build complete, no image push requested")
		return nil
	}
	fmt.Fprintln(r.Out, "Push successful")
	r.Build.Status.Output.To = &buildv1.BuildStatusOutputTo{ImageDigest: digest}
	return nil
}

// verbose reports whether the log includes the engine's internal steps.
func (r *run) verbose() bool { return r.Variable(buildpod.LogLevelVariable) >= "4" }

// output returns the reference to push the image to, or "" if the image is not pushed.
func (r *run) output() string {
	if r.Build.Spec.Output.To == nil {
		return ""
	}
	return r.Build.Spec.Output.To.Name
}

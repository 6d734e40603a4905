package builder

import (
	"context"
	"errors"
	"fmt"
	"time"

	gateway "github.com/moby/buildkit/frontend/gateway/client"
	buildv1 "github.com/openshift/api/build/v1"

	"github.com/slipway-platform/slipway/builder/engine"
)

// recipe is how a strategy makes an image.
type recipe struct {
	// step is what the status calls it.
	step buildv1.StepName
	// solve makes the image, from folders and with secrets of these names.
	solve   gateway.BuildFunc
	folders map[string]string
	secrets map[string][]byte
	// remember: the next build can take layers of this one over.
	remember bool
}

// image makes an image, runs the hook in it and pushes it.
func (r *run) image(ctx context.Context, e *engine.Engine, how recipe) error {
	var pushing time.Time
	make := func(ctx context.Context, c gateway.Client) (*gateway.Result, error) {
		var result *gateway.Result
		err := r.timed(buildv1.StageBuild, how.step, func() (err error) {
			result, err = how.solve(ctx, c)
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := r.describe(result); err != nil {
			return nil, err
		}
		if err := r.hook(ctx, c, result); err != nil {
			return nil, because(buildv1.StatusReasonPostCommitHookFailed, err)
		}
		if pushing = time.Now(); r.output() != "" {
			fmt.Fprintf(r.Out, "\nPushing image %s ...\n", r.output())
		}
		return result, nil
	}
	digest, err := e.Run(ctx, engine.Job{
		Build: make, Folders: how.folders, Secrets: how.secrets, Push: r.output(), Remember: how.remember,
		Credentials: r.credentialsOf, Out: r.Out, Verbose: r.verbose(),
	})
	if r.output() != "" && !pushing.IsZero() {
		r.took(buildv1.StagePushImage, buildv1.StepPushImage, pushing, time.Since(pushing))
	}
	var push *engine.PushError
	switch {
	case errors.As(err, &push):
		return because(buildv1.StatusReasonPushImageToRegistryFailed, err)
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

// verbose tells whether the log shows each of the engine's own steps.
func (r *run) verbose() bool { return r.Variable("BUILD_LOGLEVEL") >= "4" }

// output is the reference that the image is pushed to; empty: nowhere.
func (r *run) output() string {
	if r.Build.Spec.Output.To == nil {
		return ""
	}
	return r.Build.Spec.Output.To.Name
}

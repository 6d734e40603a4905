package builder

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/buildkit/client/llb"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	buildv1 "github.com/openshift/api/build/v1"

	"github.com/slipway-platform/slipway/builder/engine"
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// addImages copies files from other images into the context.
func (r *run) addImages(ctx context.Context, e *engine.Engine) error {
	for i, image := range r.Build.Spec.Source.Images {
		chain, err := readCredentials(filepath.Join(r.Secrets, buildpod.ImageSecret(i)))
		if err != nil {
			return err
		}
		r.images = append(r.images, chain)
		if len(image.Paths) == 0 {
			continue
		}
		fmt.Fprintf(r.Out, "Copying files of image %s ...\n", image.From.Name)
		err = r.timed(buildv1.StageFetchInputs, buildv1.StepPullInputImage, func() error { return r.addImage(ctx, e, image) })
		if err != nil {
			return withReason(buildv1.StatusReasonFetchImageContentFailed, err)
		}
	}
	return nil
}

// addImage exports the files of an image as an archive, and extracts the archive with the same
// checks as for an upload, because the image can be malicious.
func (r *run) addImage(ctx context.Context, e *engine.Engine, image buildv1.ImageSource) error {
	root, err := os.OpenRoot(r.context)
	if err != nil {
		return err
	}
	defer root.Close()
	files := llb.Scratch()
	for _, p := range image.Paths {
		files = files.File(llb.Copy(llb.Image(image.From.Name), p.SourcePath, path.Clean("/"+p.DestinationDir)+"/", &llb.CopyInfo{
			CreateDestPath: true, FollowSymlinks: true, CopyDirContentsOnly: strings.HasSuffix(p.SourcePath, "/."),
		}), llb.WithCustomName("[internal] copy files of "+image.From.Name))
	}
	writer, wait := r.extractTo(ctx, root)
	_, err = e.Run(ctx, engine.Job{
		Build:   func(ctx context.Context, c gateway.Client) (*gateway.Result, error) { return solve(ctx, c, files, nil) },
		Archive: writer, Credentials: r.credentialsFor, Out: r.Out, Verbose: r.verbose(),
	})
	writer.CloseWithError(err)
	if extractErr := wait(); extractErr != nil && err == nil {
		err = extractErr
	}
	return err
}

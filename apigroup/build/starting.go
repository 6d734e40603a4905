package build

import (
	"context"
	"fmt"

	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apiserver"
)

// records are the stored objects that starting a build reads and writes.
type records interface {
	config(ctx context.Context, name string) (*buildv1.BuildConfig, error)
	build(ctx context.Context, name string) (*buildv1.Build, error)
	create(ctx context.Context, build *buildv1.Build) (*buildv1.Build, error)
	replace(ctx context.Context, resource string, object apiserver.Object) error
}

// starting makes builds of configurations.
//
// The build is made first, and its number and images are noted in the configuration after that. Whoever is killed in between has lost nothing: the next
// one finds the number taken and notes it. The other way round, a trigger would be marked as obeyed and have no build.
type starting struct {
	records
	// images are those that a configuration's builds see.
	images func(*buildv1.BuildConfig) instantiate.Images
}

// start makes the next build of a configuration, as a request wants it. One that it gives beside an error was made and could not be noted.
func (s starting) start(ctx context.Context, name string, asked *buildv1.BuildRequest) (made *buildv1.Build, err error) {
	var next *buildv1.BuildConfig
	err = retry.OnError(retry.DefaultBackoff, errors.IsConflict, func() error {
		config, err := s.config(ctx, name)
		if err != nil {
			return err
		}
		if err := startable(config, asked); err != nil {
			return err
		}
		next = config.DeepCopy()
		images := s.images(config)
		if instantiate.BringImages(next, asked, images) {
			return errors.NewAlreadyExists(buildv1.Resource("builds"), fmt.Sprintf("%s of image %s", name, asked.TriggeredByImage.Name))
		}
		next.Status.LastVersion++
		build, err := instantiate.Build(next, asked, images)
		if err != nil {
			return errors.NewBadRequest(err.Error())
		}
		made, err = s.create(ctx, build)
		if !errors.IsAlreadyExists(err) {
			return err
		}
		if err := s.noteOther(ctx, name, build.Name, next.Status.LastVersion); err != nil {
			return err
		}
		return errors.NewConflict(buildv1.Resource("buildconfigs"), name, fmt.Errorf("build %q is there already", build.Name))
	})
	if err != nil {
		return nil, err
	}
	if err = s.replace(ctx, "buildconfigs", next); errors.IsConflict(err) {
		err = s.note(ctx, name, made, next.Status.LastVersion)
	}
	return made, err
}

// noteOther notes the build of somebody else, who may be about to do the same or may have ended.
func (s starting) noteOther(ctx context.Context, config, name string, number int64) error {
	other, err := s.build(ctx, name)
	if errors.IsNotFound(err) { // it was removed again
		return nil
	}
	if err != nil {
		return err
	}
	return s.note(ctx, config, other, number)
}

// note notes in a configuration that a number is a build's, unless it stands there.
func (s starting) note(ctx context.Context, name string, build *buildv1.Build, number int64) error {
	return retry.OnError(retry.DefaultBackoff, errors.IsConflict, func() error {
		config, err := s.config(ctx, name)
		if err != nil {
			return err
		}
		next := config.DeepCopy()
		if !instantiate.CatchUp(next, build, number) {
			return nil
		}
		return s.replace(ctx, "buildconfigs", next)
	})
}

// startable refuses requests that a configuration does not obey at present.
func startable(config *buildv1.BuildConfig, asked *buildv1.BuildRequest) error {
	switch {
	case config.DeletionTimestamp != nil:
		return errors.NewBadRequest(fmt.Sprintf("build config %q is being deleted", config.Name))
	case instantiate.Paused(config):
		return errors.NewBadRequest(fmt.Sprintf("build config %q is paused; remove its annotation %s to build again", config.Name, buildv1.BuildConfigPausedAnnotation))
	case asked.LastVersion != nil && *asked.LastVersion != config.Status.LastVersion:
		return errors.NewConflict(buildv1.Resource("buildconfigs"), config.Name,
			fmt.Errorf("the last version is %d and not %d, as the request has it", config.Status.LastVersion, *asked.LastVersion))
	}
	return nil
}

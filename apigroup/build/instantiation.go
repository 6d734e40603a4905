package build

import (
	"context"
	"fmt"
	"slices"

	buildv1 "github.com/openshift/api/build/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apiserver"
)

// objectStore reads and writes the objects of an instantiation.
type objectStore interface {
	config(ctx context.Context, name string) (*buildv1.BuildConfig, error)
	build(ctx context.Context, name string) (*buildv1.Build, error)
	create(ctx context.Context, build *buildv1.Build) (*buildv1.Build, error)
	replace(ctx context.Context, resource string, object apiserver.Object) error
}

// instantiation instantiates configurations.
//
// It creates the build first, and then records the build's number and images in the configuration.
// If the process is killed after creating the build but before recording it, the next instantiation
// finds the existing build and records it. If the order were reversed, a trigger could be marked as
// handled even though no build exists.
type instantiation struct {
	objectStore
	// images returns the image streams that a configuration's builds can use.
	images func(*buildv1.BuildConfig) instantiate.Images
}

// start instantiates a configuration for a request. If start returns both a build and an error, the
// build was created but could not be recorded.
func (s instantiation) start(ctx context.Context, name string, req *buildv1.BuildRequest) (created *buildv1.Build, err error) {
	var next *buildv1.BuildConfig
	err = retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		config, err := s.config(ctx, name)
		if err != nil {
			return err
		}
		if err := checkStartable(config, req); err != nil {
			return err
		}
		next = config.DeepCopy()
		images := s.images(config)
		if instantiate.UpdateTriggers(next, req, images) {
			return apierrors.NewAlreadyExists(buildv1.Resource("builds"), fmt.Sprintf("%s of image %s", name, req.TriggeredByImage.Name))
		}
		next.Status.LastVersion++
		build, err := instantiate.Build(next, req, images)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		created, err = s.create(ctx, build)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := s.recordExisting(ctx, name, build.Name, next.Status.LastVersion); err != nil {
			return err
		}
		return apierrors.NewConflict(buildv1.Resource("buildconfigs"), name, fmt.Errorf("build %q already exists", build.Name))
	})
	if err != nil {
		return nil, err
	}
	if err = s.replace(ctx, "buildconfigs", next); apierrors.IsConflict(err) {
		err = s.recordNumber(ctx, name, created, next.Status.LastVersion)
	}
	return created, err
}

// recordExisting records a build that another instantiation created.
func (s instantiation) recordExisting(ctx context.Context, config, name string, number int64) error {
	other, err := s.build(ctx, name)
	if apierrors.IsNotFound(err) { // the build was deleted
		return nil
	}
	if err != nil {
		return err
	}
	return s.recordNumber(ctx, config, other, number)
}

// recordNumber records a build's number in its configuration, unless it is already recorded.
func (s instantiation) recordNumber(ctx context.Context, name string, build *buildv1.Build, number int64) error {
	return retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		config, err := s.config(ctx, name)
		if err != nil {
			return err
		}
		next := config.DeepCopy()
		if !instantiate.RecordBuild(next, build, number) {
			return nil
		}
		return s.replace(ctx, "buildconfigs", next)
	})
}

// checkStartable returns an error if a configuration cannot be instantiated.
func checkStartable(config *buildv1.BuildConfig, req *buildv1.BuildRequest) error {
	switch {
	case config.DeletionTimestamp != nil:
		return apierrors.NewBadRequest(fmt.Sprintf("build config %q is being deleted", config.Name))
	case instantiate.Paused(config):
		return apierrors.NewBadRequest(fmt.Sprintf("build config %q is paused; remove its annotation %s to build again", config.Name, buildv1.BuildConfigPausedAnnotation))
	case req.LastVersion != nil && *req.LastVersion != config.Status.LastVersion:
		return apierrors.NewConflict(buildv1.Resource("buildconfigs"), config.Name,
			fmt.Errorf("the last version is %d, but the request requires %d", config.Status.LastVersion, *req.LastVersion))
	}
	return checkOptions(&config.Spec.Strategy, req)
}

// checkOptions rejects options for strategies other than the build's. It accepts empty options,
// because 4.x clients always send the options of both strategies. It also rejects variables that
// refer to secrets or config maps. Otherwise, the build would read them for a user who might only
// be allowed to start builds.
func checkOptions(strategy *buildv1.BuildStrategy, req *buildv1.BuildRequest) error {
	docker, source := req.DockerStrategyOptions, req.SourceStrategyOptions
	variables := req.Env
	if docker != nil {
		variables = slices.Concat(variables, docker.BuildArgs)
	}
	for _, variable := range variables {
		if variable.ValueFrom != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("variable %q has valueFrom: a build request supports only values; set valueFrom in the build config", variable.Name))
		}
	}
	switch {
	case docker != nil && (docker.NoCache != nil || len(docker.BuildArgs) > 0) && strategy.DockerStrategy == nil:
		return apierrors.NewBadRequest("Cannot specify Docker build specific options: the build has another strategy")
	case source != nil && source.Incremental != nil && strategy.SourceStrategy == nil:
		return apierrors.NewBadRequest("Cannot specify Source build specific options: the build has another strategy")
	}
	return nil
}

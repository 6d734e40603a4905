package build

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apiserver"
)

// fakeStore contains one configuration and its builds. A test can cause its writes to fail.
type fakeStore struct {
	current *buildv1.BuildConfig
	builds  map[string]*buildv1.Build
	killed  error  // returned by the next update of the configuration
	first   func() // called before the next update of the configuration
}

func (m *fakeStore) config(context.Context, string) (*buildv1.BuildConfig, error) {
	return m.current.DeepCopy(), nil
}

func (m *fakeStore) build(_ context.Context, name string) (*buildv1.Build, error) {
	if build := m.builds[name]; build != nil {
		return build.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(buildv1.Resource("builds"), name)
}

func (m *fakeStore) create(_ context.Context, build *buildv1.Build) (*buildv1.Build, error) {
	if m.builds[build.Name] != nil {
		return nil, apierrors.NewAlreadyExists(buildv1.Resource("builds"), build.Name)
	}
	m.builds[build.Name] = build.DeepCopy()
	return build, nil
}

func (m *fakeStore) replace(_ context.Context, _ string, object apiserver.Object) error {
	if err := m.killed; err != nil {
		m.killed = nil
		return err
	}
	if first := m.first; first != nil {
		m.first = nil
		first()
	}
	if object.GetResourceVersion() != m.current.ResourceVersion {
		return apierrors.NewConflict(buildv1.Resource("buildconfigs"), object.GetName(), errors.New("changed"))
	}
	m.current = object.(*buildv1.BuildConfig)
	m.current.ResourceVersion += "1"
	return nil
}

const rubyImage = "registry/ruby@sha256:bbb"

func newFakeStore() (*fakeStore, instantiation) {
	config := valid()
	setConfigDefaults(config)
	config.Namespace, config.Name, config.UID = "shop", "app", "uid"
	config.Spec.Triggers = []buildv1.BuildTriggerPolicy{{Type: "ConfigChange"}, {Type: "ImageChange", ImageChange: &buildv1.ImageChangeTrigger{}}}
	m := &fakeStore{current: config, builds: map[string]*buildv1.Build{}}
	images := instantiate.Images(func(string, string) (*imagev1.ImageStream, error) {
		return &imagev1.ImageStream{Status: imagev1.ImageStreamStatus{Tags: []imagev1.NamedTagEventList{{
			Tag: "2.5", Items: []imagev1.TagEvent{{Image: "sha256:bbb", DockerImageReference: rubyImage}},
		}}}}, nil
	})
	return m, instantiation{m, func(*buildv1.BuildConfig) instantiate.Images { return images }}
}

func byImage() *buildv1.BuildRequest {
	from := &corev1.ObjectReference{Kind: tagKind, Namespace: "shop", Name: "ruby:2.5"}
	return &buildv1.BuildRequest{
		From: from, TriggeredByImage: &corev1.ObjectReference{Kind: dockerKind, Name: rubyImage},
		TriggeredBy: []buildv1.BuildTriggerCause{{ImageChangeBuild: &buildv1.ImageChangeCause{ImageID: rubyImage, FromRef: from}}},
	}
}

func TestKillNeitherLosesNorRepeatsBuild(t *testing.T) {
	for name, request := range map[string]*buildv1.BuildRequest{"image": byImage(), "configuration": {LastVersion: ptr.To[int64](0)}} {
		store, instantiation := newFakeStore()
		store.killed = errors.New("killed")
		if build, err := instantiation.start(t.Context(), "app", request); err == nil || build == nil {
			t.Errorf("%s: no error: %v, %v", name, build, err)
		}
		if store.builds["app-1"] == nil || store.current.Status.LastVersion != 0 {
			t.Errorf("%s: builds after the failure are %v", name, store.builds)
		}
		// The trigger fires again, and start finds the existing build.
		if _, err := instantiation.start(t.Context(), "app", request); !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			t.Errorf("%s: second instantiation: %v", name, err)
		}
		config := store.current
		if len(store.builds) != 1 || config.Status.LastVersion != 1 || config.Spec.Triggers[1].ImageChange.LastTriggeredImageID != rubyImage {
			t.Errorf("%s: builds are %q, configuration is %+v", name, slices.Sorted(maps.Keys(store.builds)), config)
		}
	}
}

func TestConcurrentChangeKeepsBuildNumber(t *testing.T) {
	store, instantiation := newFakeStore()
	store.first = func() {
		store.current.Labels, store.current.ResourceVersion = map[string]string{"team": "red"}, "other"
	}
	build, err := instantiation.start(t.Context(), "app", byImage())
	if err != nil || build.Name != "app-1" {
		t.Fatalf("created %v, %v", build, err)
	}
	config := store.current
	if config.Labels["team"] != "red" || config.Status.LastVersion != 1 || config.Spec.Triggers[1].ImageChange.LastTriggeredImageID != rubyImage {
		t.Errorf("configuration is %+v", config)
	}
}

func TestNumberOfForeignBuildIsSkipped(t *testing.T) {
	store, instantiation := newFakeStore()
	store.builds["app-1"] = &buildv1.Build{}
	build, err := instantiation.start(t.Context(), "app", byImage())
	if err != nil || build.Name != "app-2" || store.current.Status.LastVersion != 2 {
		t.Errorf("created %v, %v; configuration is %+v", build, err, store.current.Status)
	}
}

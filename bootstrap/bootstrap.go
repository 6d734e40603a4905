// Package bootstrap maintains the objects that exist in every new cluster. On each start, the
// control plane applies the embedded manifests with server-side apply and reconciles the default
// roles and bindings. It keeps an administrator's additions and restores missing content.
package bootstrap

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slipway-platform/slipway/controller"
)

//go:embed manifests
var manifests embed.FS

// Policy is the component that reconciles the default policy. Components whose permissions are part
// of the policy start after it.
type Policy struct {
	// Deps contains the shared clients and caches.
	Deps *controller.Deps
}

// Name returns the component's name.
func (*Policy) Name() string { return "policy" }

// Run restores missing objects and rules of the default policy, creates missing security context
// constraints, calls ready, and then waits until ctx is done.
func (p *Policy) Run(ctx context.Context, ready func()) error {
	err := reconcilePolicy(ctx, p.Deps.Kube)
	if err == nil {
		err = createConstraints(ctx, p.Deps.Dynamic)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	return nil
}

// Objects is the component that applies the embedded objects.
type Objects struct {
	// Deps contains the shared clients and caches.
	Deps *controller.Deps
	// Without lists the names of manifests that are not applied, such as LocalStorage.
	Without []string
}

// LocalStorage is the name of the manifest that contains the default storage class and its driver.
const LocalStorage = "40-local-storage.yaml"

// TemplateBroker is the name of the manifest that registers the template service broker with the
// service catalog.
const TemplateBroker = "65-template-service-broker-registration.yaml"

// AnsibleBroker is the name of the manifest that registers the Ansible service broker.
const AnsibleBroker = "66-ansible-service-broker.yaml"

// Name returns the component's name.
func (o *Objects) Name() string { return "bootstrap" }

// Run applies every object once, calls ready, and then waits until ctx is done. An object whose
// kind is defined by another object might be applied after the call to ready, as soon as the API
// server serves the kind.
func (o *Objects) Run(ctx context.Context, ready func()) error {
	objects, err := load(o.Without...)
	if err != nil {
		return err
	}
	applier := newApplier(o.Deps)
	remaining, err := applier.apply(ctx, objects)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ready()
	applier.insist(ctx, remaining)
	<-ctx.Done()
	return nil
}

// load returns the objects of the embedded manifests in the order of their file names, followed by
// the samples. It omits the manifests named in without.
func load(without ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := fs.WalkDir(manifests, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || slices.Contains(without, entry.Name()) {
			return err
		}
		content, err := manifests.ReadFile(path)
		if err != nil {
			return err
		}
		decoded, err := decode(content)
		if err != nil {
			return fmt.Errorf("decode %q: %w", path, err)
		}
		objects = append(objects, decoded...)
		for _, object := range decoded {
			if err := setContent(object); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load bootstrap objects: %w", err)
	}
	quickstarts, err := sampleObjects()
	return append(objects, quickstarts...), err
}

// decode parses the documents of a manifest.
func decode(content []byte) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

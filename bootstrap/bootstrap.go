// Package bootstrap holds the objects that every cluster starts with and keeps them: at each start the
// control plane applies the embedded manifests with server-side apply, and reconciles the default roles and
// bindings, so that what an administrator added to an object stays and what is missing comes back.
package bootstrap

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

//go:embed manifests
var manifests embed.FS

// manager is the field manager under which the objects are applied.
const manager = "slipway-bootstrap"

// Objects applies the embedded objects and reconciles the default policy.
type Objects struct {
	// Client is a connection with every right.
	Client *rest.Config
}

// Name is the part's name.
func (o *Objects) Name() string { return "bootstrap" }

// Run applies every object once, calls ready, and then waits for ctx to end.
func (o *Objects) Run(ctx context.Context, ready func()) error {
	objects, err := load()
	if err != nil {
		return err
	}
	err = errors.Join(o.apply(ctx, objects), o.reconcile(ctx))
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

// reconcile keeps the default policy.
func (o *Objects) reconcile(ctx context.Context) error {
	config := rest.CopyConfig(o.Client)
	config.QPS = -1 // a hundred small objects at the first start, and two requests at the others
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for bootstrap: %w", err)
	}
	if err := reconcilePolicy(ctx, client); err != nil {
		return err
	}
	constraints, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for bootstrap: %w", err)
	}
	return createConstraints(ctx, constraints)
}

// load decodes the embedded manifests in the order of their file names.
func load() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := fs.WalkDir(manifests, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := manifests.ReadFile(path)
		if err != nil {
			return err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(object)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("decode %q: %w", path, err)
			}
			if len(object.Object) > 0 {
				objects = append(objects, object)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("load bootstrap objects: %w", err)
	}
	return objects, nil
}

func (o *Objects) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(o.Client)
	if err != nil {
		return fmt.Errorf("connect for bootstrap: %w", err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(o.Client)
	if err != nil {
		return fmt.Errorf("connect for bootstrap: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("find resource of %s: %w", kind, err)
		}
		var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resource = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		if _, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
			return fmt.Errorf("apply %s %q: %w", kind.Kind, object.GetName(), err)
		}
	}
	return nil
}

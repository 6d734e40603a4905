package image

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
)

// reads holds the streams and images that a request has read. A missing object is nil.
type reads struct {
	objects map[string]runtime.Object // keyed by resource, namespace and name
	// existing maps each resource to the number of read objects that exist.
	existing map[string]int
}

// forRequest returns a copy of the plugin that reads each object at most once.
func (p *policy) forRequest() *policy {
	plugin := *p
	plugin.reads = &reads{objects: map[string]runtime.Object{}, existing: map[string]int{}}
	return &plugin
}

// maxReads is the maximum number of objects that are looked up for a request, including objects
// that do not exist.
const maxReads = 10 * pull.MaxStreams

// read returns an object, or nil if it does not exist. It returns an error if the request has
// already read pull.MaxStreams existing objects of the resource, because streams and images can be
// large.
func (p *policy) read(ctx context.Context, resource schema.GroupResource, namespace, name string) (runtime.Object, error) {
	key := resource.Resource + "/" + namespace + "/" + name
	if object, ok := p.reads.objects[key]; ok {
		return object, nil
	}
	if p.reads.existing[resource.Resource] == pull.MaxStreams || len(p.reads.objects) == maxReads {
		return nil, fmt.Errorf("the object refers to more than %d %s; create several objects", pull.MaxStreams, resource.Resource)
	}
	object, err := p.deps.Stores[resource].Get(request.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		p.reads.objects[key] = nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %q: %w", resource.Resource, name, err)
	}
	p.reads.objects[key] = object
	p.reads.existing[resource.Resource]++
	return object, nil
}

package quota

import (
	"context"
	"fmt"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// createdStream returns the name of the image stream that a request creates as a side effect. A
// request creates a stream if it imports an image into, or adds a tag to, a stream that does not
// exist. createdStream returns "" for other requests.
func (l *ledger) createdStream(ctx context.Context, a admission.Attributes) (string, error) {
	name := ""
	switch object := a.GetObject().(type) {
	case *imagev1.ImageStreamImport:
		if object.Spec.Import {
			name = object.Name
		}
	case *imagev1.ImageStreamTag:
		name, _, _ = strings.Cut(object.Name, ":")
	case *imagev1.ImageTag:
		name, _, _ = strings.Cut(object.Name, ":")
	}
	streams, ok := l.stores[imagev1.Resource("imagestreams")]
	if name == "" || !ok {
		return "", nil
	}
	_, err := streams.Get(request.WithNamespace(ctx, a.GetNamespace()), name, &metav1.GetOptions{})
	switch {
	case err == nil:
		return "", nil
	case apierrors.IsNotFound(err):
		return name, nil
	}
	return "", fmt.Errorf("find image stream %q: %w", name, err)
}

// creation returns the attributes of an equivalent request that creates an image stream.
func creation(a admission.Attributes, name string) admission.Attributes {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: a.GetNamespace(), Name: name}}
	return admission.NewAttributesRecord(stream, nil, imagev1.GroupVersion.WithKind("ImageStream"), a.GetNamespace(), name,
		imagev1.GroupVersion.WithResource("imagestreams"), "", admission.Create, &metav1.CreateOptions{}, a.IsDryRun(), a.GetUserInfo())
}

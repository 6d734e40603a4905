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

// madeStream is the image stream that a request makes on the way: an import, or a tag, of a stream that is not there. It is "" for any other request.
func (l *ledger) madeStream(ctx context.Context, a admission.Attributes) (string, error) {
	name := ""
	switch made := a.GetObject().(type) {
	case *imagev1.ImageStreamImport:
		if made.Spec.Import {
			name = made.Name
		}
	case *imagev1.ImageStreamTag:
		name, _, _ = strings.Cut(made.Name, ":")
	case *imagev1.ImageTag:
		name, _, _ = strings.Cut(made.Name, ":")
	}
	streams, served := l.stores[imagev1.Resource("imagestreams")]
	if name == "" || !served {
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

// creation is the request that would make an image stream.
func creation(a admission.Attributes, name string) admission.Attributes {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: a.GetNamespace(), Name: name}}
	return admission.NewAttributesRecord(stream, nil, imagev1.GroupVersion.WithKind("ImageStream"), a.GetNamespace(), name,
		imagev1.GroupVersion.WithResource("imagestreams"), "", admission.Create, &metav1.CreateOptions{}, a.IsDryRun(), a.GetUserInfo())
}

package image

import (
	"context"
	"fmt"
	"slices"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// streamSecrets is the imagestreams/secrets subresource, which lists a project's registry
// credentials. Imports and the cluster's registry use it.
type streamSecrets struct {
	view
	secrets coreclient.SecretsGetter
}

var (
	_ rest.Getter               = &streamSecrets{}
	_ rest.SingularNameProvider = &streamSecrets{}
)

// New implements rest.Storage.
func (*streamSecrets) New() runtime.Object { return &imagev1.SecretList{} }

// GetSingularName implements rest.SingularNameProvider.
func (*streamSecrets) GetSingularName() string { return "imagestreamsecrets" }

// Get lists the pull secrets of the stream's project.
func (s *streamSecrets) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if _, err := s.stream(ctx, name); err != nil {
		return nil, err
	}
	return pullSecrets(ctx, s.secrets, request.NamespaceValue(ctx))
}

// skipPull is a secret annotation. If its value is "true", imports do not use the secret.
const skipPull = "openshift.io/image.excludeSecret"

// pullSecrets returns a project's secrets that contain registry credentials.
func pullSecrets(ctx context.Context, client coreclient.SecretsGetter, namespace string) (*imagev1.SecretList, error) {
	list := &imagev1.SecretList{}
	for _, kind := range []corev1.SecretType{corev1.SecretTypeDockercfg, corev1.SecretTypeDockerConfigJson} {
		existing, err := client.Secrets(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(kind)})
		if err != nil {
			return nil, fmt.Errorf("list pull secrets of project %q: %w", namespace, err)
		}
		list.ResourceVersion = existing.ResourceVersion
		list.Items = append(list.Items, slices.DeleteFunc(existing.Items, func(s corev1.Secret) bool { return s.Annotations[skipPull] == "true" })...)
	}
	return list, nil
}

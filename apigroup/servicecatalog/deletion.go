package servicecatalog

import (
	"context"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
)

// deletion is the delete strategy for objects that also exist at a broker. It records the user who
// deletes the object, because the catalog sends this user's identity to the broker.
type deletion struct {
	rest.RESTDeleteStrategy
	record func(runtime.Object, *authenticationv1.UserInfo)
}

var _ rest.RESTGracefulDeleteStrategy = deletion{}

// controllers is the prefix of the user names of Kubernetes' controllers, which delete objects
// after a user has deleted the project or the owner. Controllers are not recorded, because they
// often lack the permissions that a broker requires.
const controllers = serviceaccount.ServiceAccountUsernamePrefix + metav1.NamespaceSystem + serviceaccount.ServiceAccountUsernameSeparator

// CheckGracefulDelete records the user. Objects have no grace period.
func (d deletion) CheckGracefulDelete(ctx context.Context, object runtime.Object, _ *metav1.DeleteOptions) bool {
	if user := requester(ctx); user != nil && !strings.HasPrefix(user.Username, controllers) {
		d.record(object, user)
	}
	return false
}

// recordDeleter returns a function that sets the delete strategy of a store. field returns a
// pointer to the field that stores the user.
func recordDeleter[T apiserver.Object](field func(T) **authenticationv1.UserInfo) func(apiserver.Deps, *registry.Store) {
	return func(_ apiserver.Deps, store *registry.Store) {
		store.DeleteStrategy = deletion{store.DeleteStrategy, func(object runtime.Object, user *authenticationv1.UserInfo) {
			*field(object.(T)) = user
		}}
	}
}

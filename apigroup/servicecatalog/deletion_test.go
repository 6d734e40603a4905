package servicecatalog

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/apiserver"
)

func TestDeletionRecordsUserButNotController(t *testing.T) {
	store := &registry.Store{}
	recordDeleter(func(i *v1beta1.ServiceInstance) **authenticationv1.UserInfo { return &i.Spec.UserInfo })(apiserver.Deps{}, store)
	for name, want := range map[string]string{
		"bob": "bob", "system:serviceaccount:shop:pipeline": "system:serviceaccount:shop:pipeline",
		"system:serviceaccount:kube-system:namespace-controller": "alice",
	} {
		instance := &v1beta1.ServiceInstance{}
		instance.Spec.UserInfo = &authenticationv1.UserInfo{Username: "alice"}
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
		if graceful := store.DeleteStrategy.(deletion).CheckGracefulDelete(ctx, instance, nil); graceful || instance.Spec.UserInfo.Username != want {
			t.Errorf("after a deletion by %s, the user is %q", name, instance.Spec.UserInfo.Username)
		}
	}
}

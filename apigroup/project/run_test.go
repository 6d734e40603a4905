package project

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestControllerReplacesDeletedServiceAccount(t *testing.T) {
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	deps := &controller.Deps{Kube: client}
	deps.Init()
	componenttest.Run(t, deps.Run)
	componenttest.Run(t, (&Controller{Deps: deps, Accounts: []string{"builder"}}).Run)
	accounts := client.CoreV1().ServiceAccounts("shop")
	exists := func() bool {
		_, err := accounts.Get(t.Context(), "builder", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	eventually.True(t, "the service account exists", exists)
	// The controller recreates the account only after its cache has observed the deletion.
	eventually.True(t, "the cache has the service account", func() bool {
		_, err := deps.Informers.Core().V1().ServiceAccounts().Lister().ServiceAccounts("shop").Get("builder")
		return err == nil
	})
	if err := accounts.Delete(t.Context(), "builder", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the service account exists again", exists)
}

package project

import (
	"slices"
	"testing"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func TestControllerCreatesAccountsAndRolesOnce(t *testing.T) {
	terminating := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "going", DeletionTimestamp: &metav1.Time{}},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{projectv1.FinalizerOrigin, corev1.FinalizerKubernetes}},
	}
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, terminating)
	factory := informers.NewSharedInformerFactory(client, 0)
	k := &Controller{
		Accounts: []string{"builder", "deployer", "default"}, client: client,
		namespaces: factory.Core().V1().Namespaces().Lister(), accounts: factory.Core().V1().ServiceAccounts().Lister(),
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for _, name := range []string{"shop", "going", "gone"} {
		if err := k.Reconcile(t.Context(), name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	accounts, err := client.CoreV1().ServiceAccounts("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(accounts.Items) != 3 {
		t.Errorf("accounts are %v, %v", accounts, err)
	}
	bindings, err := client.RbacV1().RoleBindings("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, binding := range bindings.Items {
		names = append(names, binding.Name+"="+binding.RoleRef.Name+"="+binding.Subjects[0].Name)
	}
	slices.Sort(names)
	want := []string{"system:deployers=system:deployer=deployer", "system:image-builders=system:image-builder=builder", "system:image-pullers=system:image-puller=system:serviceaccounts:shop"}
	if !slices.Equal(names, want) {
		t.Errorf("bindings are %v, want %v", names, want)
	}
	finalized := false
	for _, action := range client.Actions() {
		finalized = finalized || action.GetSubresource() == "finalize"
	}
	if !finalized {
		t.Error("a project that is being deleted still has its finalizer")
	}
	if list, _ := client.CoreV1().ServiceAccounts("going").List(t.Context(), metav1.ListOptions{}); len(list.Items) != 0 {
		t.Errorf("in a project that is being deleted, the controller creates %v", list.Items)
	}
}

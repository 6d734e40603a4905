package hosts

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// tokenRetention is how long an expired token is kept before it is deleted. Until then, the error
// for a host that uses the token contains the reason why the host cannot join.
const tokenRetention = 24 * time.Hour

// Controllers is the component that approves certificate signing requests from hosts, removes hosts
// and deletes expired tokens.
type Controllers struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// RemoveMaster removes the data that the cluster stores about a master, such as its etcd
	// member.
	RemoveMaster func(ctx context.Context, node, address string) error
	// DualStack means that pods have IPv6 addresses. Nodes also have IPv6 addresses if their hosts
	// do.
	DualStack bool
}

// Name returns the component's name.
func (*Controllers) Name() string { return "hosts" }

// Run runs the controllers until ctx is done.
func (c *Controllers) Run(ctx context.Context, ready func()) error {
	client := c.Deps.Kube
	requests := c.Deps.Informers.Certificates().V1().CertificateSigningRequests()
	nodes := c.Deps.Informers.Core().V1().Nodes()
	tokens := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("type", string(corev1.SecretTypeBootstrapToken)).String()
		}))
	secrets := tokens.Core().V1().Secrets().Informer()
	a := &approver{client: client, requests: requests.Lister(), tokens: Tokens{client}, register: register{client}, dualStack: c.DualStack}
	r := &remover{client: client, nodes: nodes.Lister(), register: register{client}, removeMaster: c.RemoveMaster}
	manager := controller.Manager{
		{Name: "host certificates", Workers: 4, Watches: []controller.Watch{{Informer: requests.Informer()}}, Reconcile: a.reconcile},
		{Name: "hosts", Workers: 2, Watches: []controller.Watch{{Informer: nodes.Informer(), Changed: relevant}}, Reconcile: r.reconcile, MinBackoff: drainInterval / 4},
		{Name: "join tokens", Workers: 1, Watches: []controller.Watch{{Informer: secrets}}, Reconcile: func(ctx context.Context, key controller.Key) error {
			return expire(ctx, secrets, Tokens{client}, key)
		}},
	}
	c.Deps.Start()
	defer controller.Start(ctx, tokens)()
	return manager.Run(ctx, ready)
}

// relevant reports whether a change to a Node can require reconciliation. Most changes are status
// updates, which occur every few seconds and require none.
func relevant(old, new any) bool {
	before, after := old.(*corev1.Node), new.(*corev1.Node)
	return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		len(before.Finalizers) != len(after.Finalizers) ||
		before.Annotations[LeaveAnnotation] != after.Annotations[LeaveAnnotation] ||
		before.Spec.Unschedulable != after.Spec.Unschedulable
}

// expire deletes a token that expired long ago.
func expire(ctx context.Context, secrets cache.SharedIndexInformer, tokens Tokens, key controller.Key) error {
	object, exists, err := secrets.GetStore().GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	secret := object.(*corev1.Secret)
	if len(secret.Data[hashKey]) == 0 {
		return nil
	}
	if remaining := time.Until(infoOf(secret).Expiry.Add(tokenRetention)); remaining > 0 {
		return controller.RequeueAfter(remaining)
	}
	err = tokens.Client.CoreV1().Secrets(namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

package broker

import (
	"fmt"
	"maps"
	"net/http"

	templatev1 "github.com/openshift/api/template/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// actor is whoever a request is made for, with clients that have his rights.
type actor struct {
	user      user.Info
	kube      kubernetes.Interface
	templates templateclient.Interface
	objects   dynamic.Interface
}

// actor makes the clients of whoever a request is made for.
func (b *broker) actor(r *http.Request) (*actor, error) {
	who, err := b.originator(r)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(b.loopback)
	config.Impersonate = rest.ImpersonationConfig{UserName: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: maps.Clone(who.GetExtra())}
	a := &actor{user: who}
	if a.kube, err = kubernetes.NewForConfig(config); err == nil {
		a.templates, err = templateclient.NewForConfig(config)
	}
	if err == nil {
		a.objects, err = dynamic.NewForConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("connect as %q: %w", who.GetName(), err)
	}
	return a, nil
}

// may checks a right to TemplateInstances: people have none to the broker's own records, so that the instance's stand for them.
func (b *broker) may(r *http.Request, who user.Info, verb, namespace, name string) error {
	decision, _, err := b.authorizer.Authorize(r.Context(), authorizer.AttributesRecord{
		User: who, Verb: verb, APIGroup: templatev1.GroupName, APIVersion: templatev1.GroupVersion.Version,
		Resource: "templateinstances", Namespace: namespace, Name: name, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check the right of %q: %w", who.GetName(), err)
	}
	return refuse(http.StatusForbidden, "user %q may not %s templateinstances %q in project %q", who.GetName(), verb, name, namespace)
}

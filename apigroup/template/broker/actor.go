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

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// actor is the originator of a request, with clients that have the originator's permissions.
type actor struct {
	user      user.Info
	kube      kubernetes.Interface
	templates templateclient.Interface
	objects   dynamic.Interface
}

// actor returns the originator of a request, with clients that have the originator's permissions.
func (b *broker) actor(r *http.Request) (*actor, error) {
	u, err := osbserver.Originator(r, b.authorizer)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(b.loopback)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: maps.Clone(u.GetExtra()),
	}
	a := &actor{user: u}
	if a.kube, err = kubernetes.NewForConfig(config); err == nil {
		a.templates, err = templateclient.NewForConfig(config)
	}
	if err == nil {
		a.objects, err = dynamic.NewForConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("connect as %q: %w", u.GetName(), err)
	}
	return a, nil
}

// may checks that a user is allowed to use a verb on a TemplateInstance. This permission also
// applies to the broker's record of the instance, because users have no permissions on the records
// themselves.
func (b *broker) may(r *http.Request, u user.Info, verb, namespace, name string) error {
	decision, _, err := b.authorizer.Authorize(r.Context(), authorizer.AttributesRecord{
		User: u, Verb: verb, APIGroup: templatev1.GroupName, APIVersion: templatev1.GroupVersion.Version,
		Resource: "templateinstances", Namespace: namespace, Name: name, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check permission of %q: %w", u.GetName(), err)
	}
	return osbserver.Refuse(http.StatusForbidden, "user %q may not %s templateinstances %q in project %q",
		u.GetName(), verb, name, namespace)
}

package broker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
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

// identityHeader says for whom a platform makes a request: `kubernetes` and a user, as JSON in base64.
const identityHeader = "X-Broker-API-Originating-Identity"

// originator is for whom a request is made: the user whom the platform names, or the caller. Whoever may call the broker is believed: its role is
// for platforms.
func originator(r *http.Request) (user.Info, error) {
	header := r.Header.Get(identityHeader)
	if header == "" {
		caller, ok := request.UserFrom(r.Context())
		if !ok {
			return nil, refuse(http.StatusUnauthorized, "nobody is known to have made the request")
		}
		return caller, nil
	}
	platform, encoded, _ := strings.Cut(header, " ")
	if !strings.EqualFold(platform, kubernetesPlatform) {
		return nil, refuse(http.StatusBadRequest, "header %s is of the platform %q, and must be of %s", identityHeader, platform, kubernetesPlatform)
	}
	var named authenticationv1.UserInfo
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err == nil {
		err = json.Unmarshal(text, &named)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "read header %s: %w", identityHeader, err)
	}
	if named.Username == "" {
		return nil, refuse(http.StatusBadRequest, "header %s names no user: it lacks username", identityHeader)
	}
	extra := make(map[string][]string, len(named.Extra))
	for key, values := range named.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: named.Username, UID: named.UID, Groups: named.Groups, Extra: extra}, nil
}

// actor makes the clients of whoever a request is made for.
func (b *broker) actor(r *http.Request) (*actor, error) {
	who, err := originator(r)
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

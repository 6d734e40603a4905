// Package broker is the template service broker: it offers templates as services of the Open Service Broker API, makes TemplateInstances of them
// for users whom the platform names, and hands out what their objects expose.
//
// What it knows stands in the API: a BrokerTemplateInstance for each instance, and a TemplateInstance and a Secret with the values of parameters,
// both of the same name, in the user's project. Each request may be repeated, and goes on where one before it broke off.
//
// Source: OpenShift Container Platform 3.9 Architecture, 6.2 Template Service Broker; Open Service Broker API, version 2.13; paths, annotations and
// checks are those of OpenShift 3.11's broker.
package broker

import (
	"context"
	"fmt"
	"net/http"

	templatev1 "github.com/openshift/api/template/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/apiserver"
)

// Root is the path below which the broker answers. Roles name it as nonResourceURL, such as system:openshift:templateservicebroker-client.
const Root = "/brokers/template.openshift.io/"

// broker answers the requests of platforms.
type broker struct {
	namespaces []string
	// loopback and client have every right; what is done for a user is done with an actor's clients.
	loopback   *rest.Config
	client     templateclient.Interface
	authorizer authorizer.Authorizer
}

// New makes the handler of the paths below Root, for callers who are authenticated and authorized. It offers the templates of the namespaces.
func New(deps apiserver.Deps, namespaces []string) (http.Handler, error) {
	loopback := apiserver.Unlimited(deps.Loopback)
	client, err := templateclient.NewForConfig(loopback)
	if err != nil {
		return nil, fmt.Errorf("connect template service broker: %w", err)
	}
	b := &broker{namespaces: namespaces, loopback: loopback, client: client, authorizer: deps.Authorizer}
	const instance = Root + "v2/service_instances/{instance}"
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(*http.Request) (response, error){
		"GET " + Root + "v2/catalog":                         b.catalog,
		"PUT " + instance:                                    b.provision,
		"DELETE " + instance:                                 b.deprovision,
		"GET " + instance + "/last_operation":                b.lastOperation,
		"PUT " + instance + "/service_bindings/{binding}":    b.bind,
		"DELETE " + instance + "/service_bindings/{binding}": b.unbind,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { serve(w, r, answer) })
	}
	return mux, nil
}

// change changes a record as edit says, which returns false when there is nothing to change and may be called several times.
func (b *broker) change(ctx context.Context, record *templatev1.BrokerTemplateInstance, edit func(*templatev1.BrokerTemplateInstanceSpec) bool) error {
	records := b.client.TemplateV1().BrokerTemplateInstances()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if !edit(&record.Spec) {
			return nil
		}
		_, err := records.Update(ctx, record, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
		current, unread := records.Get(ctx, record.Name, metav1.GetOptions{})
		if unread != nil {
			return unread
		}
		record = current
		return err
	})
}

// Package broker implements the template service broker. It offers templates as services of the
// Open Service Broker API, and creates TemplateInstances on behalf of the users that the platform
// identifies. It returns the values that the objects of these instances expose.
//
// The broker stores its state in the API. Each instance has a BrokerTemplateInstance and, in the
// user's project, a TemplateInstance and a Secret with the parameter values. All three objects have
// the same name. If a request fails, the platform can retry it, and the broker then continues where
// the previous request failed.
//
// Source: OpenShift Container Platform 3.9 Architecture, 6.2 Template Service Broker, and Open
// Service Broker API, version 2.13. The paths, annotations and checks are the same as in the broker
// of OpenShift 3.11.
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
	"github.com/slipway-platform/slipway/internal/osbserver"
)

// Root is the broker's path prefix. Roles such as system:openshift:templateservicebroker-client
// contain it in nonResourceURLs.
const Root = "/brokers/template.openshift.io/"

// broker serves requests from platforms.
type broker struct {
	namespaces []string
	// loopback and client have all permissions. For actions on behalf of a user, the broker uses an
	// actor's clients.
	loopback   *rest.Config
	client     templateclient.Interface
	authorizer authorizer.Authorizer
}

// New returns the handler for the paths below Root. It offers the templates in namespaces. The
// server must have authenticated and authorized the requests.
func New(deps apiserver.Deps, namespaces []string) (http.Handler, error) {
	loopback := apiserver.Unlimited(deps.Loopback)
	client, err := templateclient.NewForConfig(loopback)
	if err != nil {
		return nil, fmt.Errorf("connect template service broker: %w", err)
	}
	b := &broker{namespaces: namespaces, loopback: loopback, client: client, authorizer: deps.Authorizer}
	const instance = Root + "v2/service_instances/{instance}"
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) (osbserver.Response, error){
		"GET " + Root + "v2/catalog":                         b.catalog,
		"PUT " + instance:                                    b.provision,
		"DELETE " + instance:                                 b.deprovision,
		"GET " + instance + "/last_operation":                b.lastOperation,
		"PUT " + instance + "/service_bindings/{binding}":    b.bind,
		"DELETE " + instance + "/service_bindings/{binding}": b.unbind,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { osbserver.Serve(w, r, handle) })
	}
	return mux, nil
}

// change applies edit to a record and updates the record. If edit returns false, change updates
// nothing. After a conflict, it calls edit again.
func (b *broker) change(ctx context.Context, record *templatev1.BrokerTemplateInstance,
	edit func(*templatev1.BrokerTemplateInstanceSpec) bool) error {
	records := b.client.TemplateV1().BrokerTemplateInstances()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if !edit(&record.Spec) {
			return nil
		}
		_, err := records.Update(ctx, record, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
		current, getErr := records.Get(ctx, record.Name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		record = current
		return err
	})
}

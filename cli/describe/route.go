package describe

import (
	"cmp"
	"fmt"
	"net"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/cli/objects"
)

// route writes a route, the routers that admit or reject it, and its endpoints.
func route(p *page, r *routev1.Route) error {
	p.metadata(r.ObjectMeta)
	host := cmp.Or(r.Spec.Host, "<auto>")
	p.field("Requested Host", host)
	for _, ingress := range r.Status.Ingress {
		exposed(p, host, ingress)
	}
	p.field("Path", r.Spec.Path)
	termination, insecure := "", ""
	if r.Spec.TLS != nil {
		termination, insecure = string(r.Spec.TLS.Termination), string(r.Spec.TLS.InsecureEdgeTerminationPolicy)
	}
	p.field("TLS Termination", termination)
	p.field("Insecure Policy", insecure)
	port := "<all endpoint ports>"
	if r.Spec.Port != nil {
		port = r.Spec.Port.TargetPort.String()
	}
	p.field("Endpoint Port", port)
	backends := append([]routev1.RouteTargetReference{r.Spec.To}, r.Spec.AlternateBackends...)
	total := int32(0)
	for _, backend := range backends {
		total += weight(backend)
	}
	for _, backend := range backends {
		share := 0.0
		if total > 0 {
			share = float64(weight(backend)) / float64(total) * 100
		}
		p.line("")
		p.field(backend.Kind, backend.Name)
		p.field("Weight", fmt.Sprintf("%d (%.0f%%)", weight(backend), share))
		endpoints(p, r.Namespace, backend.Name)
	}
	return nil
}

func weight(backend routev1.RouteTargetReference) int32 {
	if backend.Weight == nil {
		return 100
	}
	return *backend.Weight
}

// exposed writes whether a router has admitted the route's host, and when its decision last
// changed.
func exposed(p *page, host string, ingress routev1.RouteIngress) {
	for _, condition := range ingress.Conditions {
		if condition.Type != routev1.RouteAdmitted {
			continue
		}
		since := ""
		if condition.LastTransitionTime != nil {
			since = " " + p.ago(*condition.LastTransitionTime)
		}
		name := "router " + ingress.RouterName
		if ingress.Host != host {
			name += " as " + ingress.Host
		}
		switch condition.Status {
		case corev1.ConditionTrue:
			p.line("\t  exposed on %s%s", name, since)
		case corev1.ConditionFalse:
			p.line("\t  rejected by %s: %s (%s)%s", name, condition.Message, condition.Reason, since)
		}
		return
	}
}

// endpoints writes at most three addresses of a service.
func endpoints(p *page, namespace, service string) {
	slices, err := objects.List[discoveryv1.EndpointSlice](p.ctx, p.client, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), namespace,
		metav1.ListOptions{LabelSelector: labels.Set{discoveryv1.LabelServiceName: service}.String()})
	if err != nil {
		p.field("Endpoints", fmt.Sprintf("<error: %v>", err))
		return
	}
	if len(slices) == 0 {
		_, err := p.client.Resource(corev1.SchemeGroupVersion.WithResource("services")).Namespace(namespace).Get(p.ctx, service, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			p.field("Endpoints", fmt.Sprintf("<error: endpoints %q not found>", service))
			return
		}
	}
	var addresses []string
	for _, slice := range slices {
		for _, port := range slice.Ports {
			for _, endpoint := range slice.Endpoints {
				for _, address := range endpoint.Addresses {
					addresses = append(addresses, net.JoinHostPort(address, fmt.Sprint(optional(port.Port))))
				}
			}
		}
	}
	const maxShown = 3
	text := strings.Join(addresses[:min(len(addresses), maxShown)], ", ")
	if len(addresses) > maxShown {
		text += fmt.Sprintf(" + %d more...", len(addresses)-maxShown)
	}
	p.field("Endpoints", text)
}

// template writes a template, its parameters and its objects.
func template(p *page, t *templatev1.Template) error {
	p.metadata(t.ObjectMeta)
	p.field("Description", t.Annotations["description"])
	p.line("\nParameters:")
	for _, parameter := range t.Parameters {
		p.field("    Name", parameter.Name)
		if parameter.DisplayName != "" {
			p.field("    Display Name", parameter.DisplayName)
		}
		if parameter.Description != "" {
			p.field("    Description", parameter.Description)
		}
		p.field("    Required", parameter.Required)
		if parameter.Generate != "" {
			p.field("    Generated", parameter.Generate)
			p.field("    From", parameter.From)
		} else {
			p.field("    Value", parameter.Value)
		}
		p.line("")
	}
	p.lines("Object Labels", pairs(t.ObjectLabels))
	p.line("")
	p.field("Message", t.Message)
	p.line("\nObjects:")
	for i, raw := range t.Objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			return fmt.Errorf("read objects[%d] of template %q: %w", i, t.Name, err)
		}
		kind := object.GetKind()
		if group := object.GroupVersionKind().Group; group != "" {
			kind += "." + group
		}
		p.line("    %s\t%s", kind, object.GetName())
	}
	return nil
}

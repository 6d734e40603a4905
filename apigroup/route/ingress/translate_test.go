package ingress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// fixtures returns the services and secrets for the tests.
func fixtures() sources {
	services := map[string]*corev1.Service{
		"web": {Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "admin", Port: 8080}}}},
		"one": {Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	}
	secrets := map[string]*corev1.Secret{
		"pair":  {Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte("C"), "tls.key": []byte("K")}},
		"empty": {Type: corev1.SecretTypeTLS},
		"other": {Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"tls.crt": []byte("C"), "tls.key": []byte("K")}},
	}
	return sources{func(name string) *corev1.Service { return services[name] }, func(name string) *corev1.Secret { return secrets[name] }, "apps.com"}
}

func TestTranslate(t *testing.T) {
	rule := func(host, path, kind, backend string) string {
		return fmt.Sprintf("rules: [{host: %q, http: {paths: [{path: %q, pathType: %s, backend: {%s}}]}}]", host, path, kind, backend)
	}
	const web, one = "service: {name: web, port: {name: admin}}", "service: {name: one, port: {number: 80}}"
	for spec, want := range map[string]string{
		rule("a.com", "/x", "Prefix", web):                                                 "a.com/x web:admin ",
		rule("a.com", "", "ImplementationSpecific", one):                                   "a.com one ",
		rule("a.com", "/", "Prefix", "service: {name: web, port: {number: 80}}"):           "a.com/ web:http ",
		rule("a.com", "/x", "Exact", web):                                                  "a.com/x= web:admin ",
		rule("a.com", "/x/", "Exact", web):                                                 "a.com/x/= web:admin ",
		rule("a.com", "/x/", "Prefix", web):                                                "a.com/x web:admin ",
		rule("a.com", "/x/", "ImplementationSpecific", web):                                "a.com/x/ web:admin ",
		rule("", "/x", "Prefix", web):                                                      "front-shop.apps.com/x web:admin ",
		rule("*.a.com", "/x", "Prefix", web):                                               "*.a.com/x web:admin ",
		rule("a.com", "/x", "Prefix", "resource: {kind: Bucket, name: b}"):                 "- its backend is not a service",
		rule("a.com", "/x", "Prefix", "service: {name: none, port: {number: 1}}"):          `- service "none" does not exist`,
		rule("a.com", "/x", "Prefix", "service: {name: web, port: {number: 1}}"):           `- service "web" has no port 1`,
		"defaultBackend: {" + web + "}":                                                    "front-shop.apps.com/ web:admin ",
		"defaultBackend: {" + web + "}\n" + rule("a.com", "/x", "Prefix", one):             "a.com/ web:admin a.com/x one ",
		"defaultBackend: {" + web + "}\n" + rule("a.com", "/", "Prefix", one):              "a.com/ one ",
		"defaultBackend: {" + web + "}\n" + rule("a.com", "/", "Exact", one):               "a.com/ web:admin a.com/= one ",
		"defaultBackend: {" + web + "}\nrules: [{host: a.com}]":                            "a.com/ web:admin ",
		"rules: [{host: a.com}]":                                                           "",
		rule("x.a.com", "/", "Prefix", one) + "\ntls: [{hosts: ['*.a.com']}]":              "x.a.com/ one edge/Redirect   ",
		rule("x.y.a.com", "/", "Prefix", one) + "\ntls: [{hosts: ['*.a.com']}]":            "x.y.a.com/ one ",
		rule("*.a.com", "/", "Prefix", one) + "\ntls: [{hosts: ['*.a.com']}]":              "*.a.com/ one edge/Redirect   ",
		rule("a.com", "/", "Prefix", one) + "\ntls: [{secretName: pair}]":                  "a.com/ one edge/Redirect C K ",
		rule("a.com", "/", "Prefix", one) + "\ntls: [{hosts: [a.com], secretName: pair}]":  "a.com/ one edge/Redirect C K ",
		rule("a.com", "/", "Prefix", one) + "\ntls: [{hosts: [b.com], secretName: pair}]":  "a.com/ one ",
		rule("a.com", "/", "Prefix", one) + "\ntls: [{hosts: [a.com]}]":                    "a.com/ one edge/Redirect   ",
		rule("a.com", "/", "Prefix", one) + "\ntls: [{hosts: [a.com], secretName: empty}]": `- secret "empty" lacks`,
		rule("a.com", "/", "Prefix", one) + "\ntls: [{hosts: [a.com], secretName: other}]": `- secret "other" of type kubernetes.io/tls does not exist`,
	} {
		ingress := &networkingv1.Ingress{}
		if err := yaml.UnmarshalStrict([]byte(spec), &ingress.Spec); err != nil {
			t.Fatal(err)
		}
		ingress.Namespace, ingress.Name, ingress.UID = "shop", "front", "1"
		routes, notes := translate(ingress, fixtures())
		got := ""
		slices.SortFunc(routes, func(a, b *routev1.Route) int {
			return cmp.Or(cmp.Compare(a.Spec.Path, b.Spec.Path), cmp.Compare(a.Annotations[PathType], b.Annotations[PathType]))
		})
		for _, route := range routes {
			host := route.Spec.Host
			if route.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain {
				host = strings.Replace(host, "wildcard", "*", 1)
			}
			got += host + route.Spec.Path
			if route.Annotations[PathType] == "Exact" {
				got += "="
			}
			got += " " + route.Spec.To.Name
			if route.Spec.Port != nil {
				got += ":" + route.Spec.Port.TargetPort.String()
			}
			if tls := route.Spec.TLS; tls != nil {
				got += fmt.Sprintf(" %s/%s %s %s", tls.Termination, tls.InsecureEdgeTerminationPolicy, tls.Certificate, tls.Key)
			}
			got += " "
		}
		reason, ok := strings.CutPrefix(want, "- ")
		switch {
		case ok && (got != "" || len(notes) != 1 || !strings.Contains(notes[0], reason)):
			t.Errorf("%s\nbecomes %q with notes %q", spec, got, notes)
		case !ok && (got != want || len(notes) > 0):
			t.Errorf("%s\nbecomes %q with notes %q, want %q", spec, got, notes, want)
		}
	}
}

func TestRoutesOfIngressHaveDistinctNames(t *testing.T) {
	ingress := &networkingv1.Ingress{}
	ingress.Name, ingress.UID = strings.Repeat("long.", 40)+"x", "1"
	ingress.Labels = map[string]string{"team": "red"}
	ingress.Annotations = map[string]string{"haproxy.router.openshift.io/timeout": "5s", "mine": "x"}
	const paths = `rules:
- {host: a.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}, {path: /b, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}]}}
- {host: a.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}]}}`
	if err := yaml.UnmarshalStrict([]byte(paths), &ingress.Spec); err != nil {
		t.Fatal(err)
	}
	routes, _ := translate(ingress, fixtures())
	if len(routes) != 2 || routes[0].Name == routes[1].Name {
		t.Fatalf("got %d routes", len(routes))
	}
	for _, route := range routes {
		if len(route.Name) > 63 || route.Labels["team"] != "red" || len(route.Annotations) != 1 || route.OwnerReferences[0].UID != "1" {
			t.Errorf("the route is %v", route.ObjectMeta)
		}
	}
}

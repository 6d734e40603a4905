package route

import (
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func valid() *routev1.Route {
	route := &routev1.Route{Spec: routev1.RouteSpec{Host: "www.example.com", To: routev1.RouteTargetReference{Name: "web"}}}
	route.Name, route.Namespace = "front", "shop"
	return route
}

func TestDefaults(t *testing.T) {
	route := valid()
	route.Spec.AlternateBackends = []routev1.RouteTargetReference{{Name: "other", Weight: ptr.To[int32](0)}}
	route.Spec.TLS = &routev1.TLSConfig{}
	setDefaults(route)
	if spec := route.Spec; spec.WildcardPolicy != routev1.WildcardPolicyNone || spec.To.Kind != "Service" || *spec.To.Weight != 100 ||
		*spec.AlternateBackends[0].Weight != 0 || spec.TLS.Termination != routev1.TLSTerminationEdge {
		t.Errorf("defaulted %+v", spec)
	}
}

func TestValidation(t *testing.T) {
	tls := func(config routev1.TLSConfig) func(*routev1.Route) {
		return func(r *routev1.Route) { r.Spec.TLS = &config }
	}
	alternates := func(count int) func(*routev1.Route) {
		return func(r *routev1.Route) {
			for range count {
				r.Spec.AlternateBackends = append(r.Spec.AlternateBackends, routev1.RouteTargetReference{Kind: "Service", Name: "other"})
			}
		}
	}
	for name, tt := range map[string]struct {
		change func(*routev1.Route)
		want   string // the field that is rejected, or empty
	}{
		"plain":                               {func(*routev1.Route) {}, ""},
		"no host":                             {func(r *routev1.Route) { r.Spec.Host = "" }, ""},
		"name of 64 characters":               {func(r *routev1.Route) { r.Name = strings.Repeat("a", 64) }, "metadata.name"},
		"host with a space":                   {func(r *routev1.Route) { r.Spec.Host = "www example.com" }, "spec.host"},
		"host with a long label":              {func(r *routev1.Route) { r.Spec.Host = strings.Repeat("a", 64) + ".example.com" }, "spec.host"},
		"path":                                {func(r *routev1.Route) { r.Spec.Path = "/test" }, ""},
		"path without slash":                  {func(r *routev1.Route) { r.Spec.Path = "test" }, "spec.path"},
		"no service":                          {func(r *routev1.Route) { r.Spec.To.Name = "" }, "spec.to.name"},
		"other kind":                          {func(r *routev1.Route) { r.Spec.To.Kind = "Pod" }, "spec.to.kind"},
		"weight 256":                          {func(r *routev1.Route) { r.Spec.To.Weight = ptr.To[int32](256) }, ""},
		"weight 257":                          {func(r *routev1.Route) { r.Spec.To.Weight = ptr.To[int32](257) }, "spec.to.weight"},
		"negative weight":                     {func(r *routev1.Route) { r.Spec.To.Weight = ptr.To[int32](-1) }, "spec.to.weight"},
		"three alternates":                    {alternates(3), ""},
		"four alternates":                     {alternates(4), "spec.alternateBackends"},
		"named port":                          {func(r *routev1.Route) { r.Spec.Port = &routev1.RoutePort{TargetPort: intstr.FromString("web")} }, ""},
		"no port":                             {func(r *routev1.Route) { r.Spec.Port = &routev1.RoutePort{} }, "spec.port.targetPort"},
		"port 70000":                          {func(r *routev1.Route) { r.Spec.Port = &routev1.RoutePort{TargetPort: intstr.FromInt32(70000)} }, "spec.port.targetPort"},
		"subdomain":                           {func(r *routev1.Route) { r.Spec.WildcardPolicy = routev1.WildcardPolicySubdomain }, ""},
		"unknown wildcard":                    {func(r *routev1.Route) { r.Spec.WildcardPolicy = "All" }, "spec.wildcardPolicy"},
		"edge":                                {tls(routev1.TLSConfig{Termination: "edge", Certificate: "c", Key: "k"}), ""},
		"edge with destination":               {tls(routev1.TLSConfig{Termination: "edge", DestinationCACertificate: "c"}), "spec.tls.destinationCACertificate"},
		"edge that allows HTTP":               {tls(routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Allow"}), ""},
		"passthrough":                         {tls(routev1.TLSConfig{Termination: "passthrough", InsecureEdgeTerminationPolicy: "Redirect"}), ""},
		"passthrough with key":                {tls(routev1.TLSConfig{Termination: "passthrough", Key: "k"}), "spec.tls.key"},
		"passthrough that allows HTTP":        {tls(routev1.TLSConfig{Termination: "passthrough", InsecureEdgeTerminationPolicy: "Allow"}), "spec.tls.insecureEdgeTerminationPolicy"},
		"re-encryption":                       {tls(routev1.TLSConfig{Termination: "reencrypt"}), ""},
		"re-encryption with a capital letter": {tls(routev1.TLSConfig{Termination: "Reencrypt"}), "spec.tls.termination"},
		"wildcard policy without host":        {func(r *routev1.Route) { r.Spec.Host, r.Spec.WildcardPolicy = "", "Subdomain" }, "spec.wildcardPolicy"},
		"passthrough with a path":             {func(r *routev1.Route) { r.Spec.Path, r.Spec.TLS = "/a", &routev1.TLSConfig{Termination: "passthrough"} }, "spec.path"},
	} {
		t.Run(name, func(t *testing.T) {
			route := valid()
			setDefaults(route)
			tt.change(route)
			errs := validate(t.Context(), route, nil)
			if tt.want == "" && len(errs) > 0 || tt.want != "" && (len(errs) != 1 || errs[0].Field != tt.want) {
				t.Errorf("errors are %v, want one with %q", errs, tt.want)
			}
		})
	}
}

func TestErrorsDoNotContainKeys(t *testing.T) {
	route := valid()
	route.Spec.TLS = &routev1.TLSConfig{Termination: "passthrough", Key: "very secret"}
	if errs := validate(t.Context(), route, nil); len(errs) == 0 || strings.Contains(errs.ToAggregate().Error(), "secret") {
		t.Errorf("errors are %v", errs)
	}
}

func TestColumns(t *testing.T) {
	route := valid()
	route.Spec.TLS = &routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Redirect"}
	route.Spec.To.Weight = ptr.To[int32](30)
	route.Spec.AlternateBackends = []routev1.RouteTargetReference{{Name: "b", Weight: ptr.To[int32](10)}}
	setDefaults(route)
	check := func(want ...any) {
		t.Helper()
		for i, column := range columns() {
			if got := column.Value(route); got != want[i] {
				t.Errorf("%s is %v, want %v", column.Name, got, want[i])
			}
		}
	}
	check("www.example.com", "", "web(75%),b(25%)", "<all>", "edge/Redirect", "None")
	ingress := routev1.RouteIngress{Conditions: []routev1.RouteIngressCondition{
		{Type: routev1.RouteAdmitted, Status: corev1.ConditionFalse, Reason: "HostAlreadyClaimed"},
	}}
	route.Status.Ingress = []routev1.RouteIngress{ingress}
	check("HostAlreadyClaimed", "", "web(75%),b(25%)", "<all>", "edge/Redirect", "None")
}

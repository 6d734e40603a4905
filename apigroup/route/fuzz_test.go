package route

import (
	"context"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// FuzzValidate checks that the host of a valid route is a single host name.
func FuzzValidate(f *testing.F) {
	for _, seed := range []string{"www.example.com", "a b", "a\nb", "A.b", "*.a", "..", "a.", "xn--a", "127.0.0.1", "a/b", "a:80"} {
		f.Add(seed, "/"+seed, seed, "true")
	}
	f.Fuzz(func(t *testing.T, host, path, port, lenient string) {
		route := &routev1.Route{
			ObjectMeta: metav1.ObjectMeta{Name: "r", Annotations: map[string]string{routev1.AllowNonDNSCompliantHostAnnotation: lenient}},
			Spec: routev1.RouteSpec{
				Host: host, Path: path, To: routev1.RouteTargetReference{Kind: "Service", Name: "web"}, Port: &routev1.RoutePort{TargetPort: intstr.Parse(port)},
			},
		}
		if len(validate(context.Background(), route, nil)) > 0 {
			return
		}
		if strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || len(host) > 253 {
			t.Errorf("host %q is allowed", host)
		}
		if path != "" && path[0] != '/' {
			t.Errorf("path %q is allowed", path)
		}
	})
}

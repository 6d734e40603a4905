package create

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestExposeCreatesRoute(t *testing.T) {
	port, number, word := corev1.ServicePort{Name: "web", Port: 80, Protocol: "TCP"}, corev1.ServicePort{Port: 80, TargetPort: intstr.FromInt32(8080)}, corev1.ServicePort{Port: 80, TargetPort: intstr.FromString("http")}
	datagrams := corev1.ServicePort{Name: "dns", Port: 53, Protocol: "UDP"}
	for _, c := range []struct {
		flags string
		ports []corev1.ServicePort
		want  string
	}{
		{"", []corev1.ServicePort{port}, "front  front: web map[app:front]"},
		{"", []corev1.ServicePort{number}, "front  front: 8080 map[app:front]"},
		{"", []corev1.ServicePort{word}, "front  front: <nil> map[app:front]"},
		{"", []corev1.ServicePort{datagrams, port}, "front  front: web map[app:front]"},
		{"", []corev1.ServicePort{datagrams}, "error has no TCP port"},
		{"", nil, "error --port"},
		{"port=9090", nil, "front  front: 9090 map[app:front]"},
		{"port=admin name=shop hostname=a.com path=/x wildcard-policy=Subdomain labels=a=b", []corev1.ServicePort{port}, "shop a.com/x Subdomain front: admin map[a:b]"},
		{"target-port=80", []corev1.ServicePort{port}, "error --generator=service/v1"},
		{"protocol=tcp", []corev1.ServicePort{port}, "front  front: web map[app:front]"},
		{"labels=a", []corev1.ServicePort{port}, "error --labels"},
	} {
		flags := map[string]string{}
		for _, word := range strings.Fields(c.flags) {
			name, value, _ := strings.Cut(word, "=")
			flags[name] = value
		}
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "front", Labels: map[string]string{"app": "front"}}, Spec: corev1.ServiceSpec{Ports: c.ports}}
		route, err := routeTo(service, func(name string) string { return flags[name] })
		got := ""
		if err != nil {
			got = "error " + err.Error()
			if reason, ok := strings.CutPrefix(c.want, "error "); ok && strings.Contains(got, reason) {
				continue
			}
		} else {
			port := "<nil>"
			if route.Spec.Port != nil {
				port = route.Spec.Port.TargetPort.String()
			}
			host := strings.TrimSpace(route.Spec.Host + route.Spec.Path + " " + string(route.Spec.WildcardPolicy))
			got = fmt.Sprintf("%s %s %s: %s %v", route.Name, host, route.Spec.To.Name, port, route.Labels)
		}
		if got != c.want {
			t.Errorf("%q of %v becomes %q, want %q", c.flags, c.ports, got, c.want)
		}
	}
}

package routerpod

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipway-platform/slipway/internal/version"
)

// servingCertificate is the service annotation that requests a serving certificate.
const servingCertificate = "service.alpha.openshift.io/serving-cert-secret-name"

// Objects returns the router's objects in creation order, and notes for the user. Its error lists
// all invalid flags.
func (r *Request) Objects() (objects []runtime.Object, notes []string, err error) {
	p, err := r.read()
	if err != nil {
		return nil, nil, err
	}
	objects = append(p.access(), p.statistics())
	if p.certificate != nil {
		objects = append(objects, &corev1.Secret{
			TypeMeta: kind("v1", "Secret"), ObjectMeta: p.meta(p.certificates()), Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: p.certificate, corev1.TLSPrivateKeyKey: p.key},
		})
	}
	if p.authorities != nil {
		data := map[string]string{"ca.pem": string(p.authorities)}
		if p.revoked != nil {
			data["crl.pem"] = string(p.revoked)
		}
		objects = append(objects, &corev1.ConfigMap{TypeMeta: kind("v1", "ConfigMap"), ObjectMeta: p.meta(p.Name + "-client-ca"), Data: data})
	}
	objects = append(objects, p.service(), p.config())
	if p.hostNetwork || p.hostPorts {
		notes = p.collisions()
	}
	return objects, notes, nil
}

// collisions returns a note if the pods use host ports that each node's built-in router already
// uses.
func (p *plan) collisions() (notes []string) {
	var shared []string
	for _, port := range p.ports {
		if port.host == 80 || port.host == 443 {
			shared = append(shared, strconv.Itoa(int(port.host)))
		}
	}
	if p.statsOnHost() && p.listen() == listenPort {
		shared = append(shared, strconv.Itoa(listenPort))
	}
	if len(shared) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the router of every node uses ports 80, 443 and 1936; pods with the host ports %s can serve only on nodes whose NodeConfig has slipway.router.disabled. "+
		"To use other ports, set --ports and --stats-port, or --host-network=false --host-ports=false.", strings.Join(shared, ", "))}
}

func kind(version, name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: name}
}

// meta returns the metadata of one of the router's objects.
func (p *plan) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: p.Namespace, Labels: maps.Clone(p.labels)}
}

func (p *plan) certificates() string { return p.Name + "-certs" }

// access returns the service account and the objects that grant its permissions.
func (p *plan) access() []runtime.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.Namespace, Name: p.account}}
	binding := func(name, kindOfRole, role string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			TypeMeta: kind(rbacv1.SchemeGroupVersion.String(), "RoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kindOfRole, Name: role}, Subjects: subjects,
		}
	}
	role := "router-" + p.Name + "-role"
	objects := []runtime.Object{&corev1.ServiceAccount{TypeMeta: kind("v1", "ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Name: p.account, Namespace: p.Namespace}}}
	if p.OwnProject {
		watch := []string{"get", "list", "watch"}
		objects = append(objects, &rbacv1.Role{
			TypeMeta: kind(rbacv1.SchemeGroupVersion.String(), "Role"), ObjectMeta: metav1.ObjectMeta{Name: role, Namespace: p.Namespace},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: watch},
				{APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"}, Verbs: watch},
				{APIGroups: []string{routev1.GroupName}, Resources: []string{"routes"}, Verbs: watch},
				{APIGroups: []string{routev1.GroupName}, Resources: []string{"routes/status"}, Verbs: []string{"update"}},
			},
		}, binding(role, "Role", role))
	} else {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			TypeMeta: kind(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:router"}, Subjects: subjects,
		})
	}
	// For F5's native integration, the router must be allowed to watch nodes.
	if *p.external["ROUTER_EXTERNAL_HOST_VXLAN_GW_CIDR"] != "" && p.kind == f5Router {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			TypeMeta: kind(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: "router-" + p.Name + "-sdn-reader"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:sdn-reader"}, Subjects: subjects,
		})
	}
	if p.hostNetwork || p.hostPorts {
		objects = append(objects, binding("router-"+p.Name+"-hostnetwork", "ClusterRole", "system:openshift:scc:hostnetwork"))
	}
	return objects
}

// statistics returns the secret that contains the values that must not appear in the pod template:
// passwords and the SSH key.
func (p *plan) statistics() *corev1.Secret {
	secret := &corev1.Secret{
		TypeMeta: kind("v1", "Secret"), ObjectMeta: p.meta(p.Name + "-stats"), Type: corev1.SecretTypeOpaque,
		StringData: map[string]string{"username": p.statsUser, "password": p.statsPassword},
	}
	if p.externalPassword != "" {
		secret.StringData["external-host-password"] = p.externalPassword
	}
	if p.sshKey != nil {
		secret.StringData["router.pem"] = string(p.sshKey)
	}
	if p.sshHosts != nil {
		secret.StringData["known_hosts"] = string(p.sshHosts)
	}
	return secret
}

func (p *plan) service() *corev1.Service {
	service := &corev1.Service{
		TypeMeta: kind("v1", "Service"), ObjectMeta: p.meta(p.Name), Spec: corev1.ServiceSpec{Selector: maps.Clone(p.labels)},
	}
	service.Annotations = map[string]string{"prometheus.io/port": strconv.Itoa(p.listen()), "prometheus.io/scrape": "true"}
	if p.certificate == nil && p.kind == haproxyRouter {
		service.Annotations[servingCertificate] = p.certificates()
	}
	for _, item := range append(slices.Clone(p.ports), port{container: int32(p.listen())}) {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: fmt.Sprintf("%d-tcp", item.container), Port: item.container, TargetPort: intstr.FromInt32(item.container), Protocol: corev1.ProtocolTCP,
		})
	}
	return service
}

// listen returns the port for health checks, metrics and statistics.
func (p *plan) listen() int { return cmp.Or(p.statsPort, listenPort) }

// statsOnHost reports whether the port that listen returns is also a host port. If statistics are
// disabled, no host port is necessary, because only the kubelet connects to the port, at the pod's
// IP address.
func (p *plan) statsOnHost() bool { return p.hostNetwork || p.hostPorts && p.statsPort != 0 }

// config returns the deployment config. If the pods use host ports, it sets maxSurge to 0, because
// a new pod can start only after an old pod has terminated.
func (p *plan) config() *appsv1.DeploymentConfig {
	unavailable := intstr.FromString("25%")
	rolling := &appsv1.RollingDeploymentStrategyParams{MaxUnavailable: &unavailable}
	if p.hostNetwork || p.hostPorts {
		surge := intstr.FromInt32(0)
		rolling.MaxSurge = &surge
	}
	return &appsv1.DeploymentConfig{
		TypeMeta: kind(appsv1.GroupVersion.String(), "DeploymentConfig"), ObjectMeta: p.meta(p.Name),
		Spec: appsv1.DeploymentConfigSpec{
			Replicas: p.replicas, Selector: maps.Clone(p.labels),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyTypeRolling, RollingParams: rolling},
			Triggers: appsv1.DeploymentTriggerPolicies{{Type: appsv1.DeploymentTriggerOnConfigChange}},
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(p.labels)}, Spec: p.pod()},
		},
	}
}

// image returns the image of the pods.
func (p *plan) image() string {
	release := version.Slipway()
	if p.latest {
		release = "latest"
	}
	return strings.NewReplacer("${component}", p.kind, "${version}", release).Replace(p.images)
}

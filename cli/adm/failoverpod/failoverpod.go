// Package failoverpod creates the objects for an IP failover configuration, as OpenShift 3's `oc
// adm ipfailover` does: a deployment config, its service account and a role binding. The
// configuration's pods keep virtual IP addresses available on a group of hosts.
package failoverpod

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/internal/virtualip"
)

// Request describes an IP failover configuration. AddFlags binds the unexported fields to flags.
type Request struct {
	// Name and Namespace identify the deployment config.
	Name, Namespace string

	kind, images, account, selector, device, addresses, chain, check, notify, preemption string
	latest                                                                               bool
	replicas                                                                             int32
	port, interval, groups, offset                                                       int
	ignoredSecrets                                                                       string
}

const (
	// defaultImages is the default image of the pods. Every node with keepalived provides it.
	defaultImages = "localhost/slipway-ipfailover:current"
	// hostPort is the first of the host ports that the pods reserve. All pods of a configuration
	// request the same port, hostPort plus --vrrp-id-offset, so that the scheduler never places two
	// of them on the same host. No process listens on these ports.
	hostPort = 63000
	// maxID is the highest VRRP ID. Each group of addresses uses one ID.
	maxID = 255
)

// AddFlags adds the flags of OpenShift 3.11's `oc adm ipfailover`.
func (r *Request) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.kind, "type", "keepalived", "Kind of failover. Must be keepalived.")
	flags.StringVar(&r.images, "images", defaultImages, "Image of the pods. ${component} is replaced with keepalived-ipfailover, ${version} with the version.")
	flags.BoolVar(&r.latest, "latest-images", false, "Replace ${version} in --images with latest.")
	flags.StringVarP(&r.selector, "selector", "l", "", "Labels of the nodes that share the addresses, as KEY=VALUE,KEY=VALUE.")
	flags.StringVar(&r.account, "service-account", "ipfailover", "Service account of the pods.")
	flags.StringVarP(&r.device, "interface", "i", "", "Network device that gets the addresses. The default is the device of the default route.")
	flags.StringVar(&r.addresses, "virtual-ips", "", "Addresses to share, as single addresses and ranges: 192.0.2.10-12,192.0.2.20.")
	flags.IntVar(&r.groups, "virtual-ip-groups", 0, "Number of address groups; the addresses of a group move together. If 0, each address moves independently.")
	flags.StringVar(&r.chain, "iptables-chain", "INPUT", "Host firewall chain that accepts VRRP messages. If empty, no chain is changed.")
	flags.StringVar(&r.check, "check-script", "", "Path in the pods of a script that checks whether a host can have addresses.")
	flags.IntVar(&r.interval, "check-interval", 2, "Seconds between checks.")
	flags.StringVar(&r.notify, "notify-script", "", "Path in the pods of a script that runs when the state of a group changes.")
	flags.StringVar(&r.preemption, "preemption-strategy", "preempt_nodelay 300", "Whether and when a recovered host takes its addresses back: preempt_nodelay, preempt_delay SECONDS or nopreempt.")
	flags.IntVar(&r.offset, "vrrp-id-offset", 0, "Offset of the VRRP IDs. Configurations in one network need different IDs.")
	flags.IntVarP(&r.port, "watch-port", "w", 80, "Port that must accept connections on a host that has addresses. If 0, no port is checked.")
	flags.Int32VarP(&r.replicas, "replicas", "r", 1, "Number of hosts that share the addresses.")
	flags.StringVar(&r.ignoredSecrets, "credentials", "", "Ignored. Accepted for compatibility with OpenShift 3.")
	// MarkDeprecated cannot fail because the flag exists.
	_ = flags.MarkDeprecated("credentials", "it has no effect: the pods need no credentials")
}

// Objects returns the objects in creation order. Its error lists all invalid flags.
func (r *Request) Objects() ([]runtime.Object, error) {
	nodes, err := r.validate()
	if err != nil {
		return nil, err
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: r.Namespace, Labels: r.labels()}
	}
	kind := func(version, name string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: version, Kind: name} }
	return []runtime.Object{
		&corev1.ServiceAccount{TypeMeta: kind("v1", "ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Name: r.account, Namespace: r.Namespace}},
		&rbacv1.RoleBinding{
			TypeMeta: kind(rbacv1.SchemeGroupVersion.String(), "RoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: "ipfailover-" + r.account, Namespace: r.Namespace},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:openshift:scc:privileged"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: r.account}},
		},
		&appsv1.DeploymentConfig{
			TypeMeta: kind(appsv1.GroupVersion.String(), "DeploymentConfig"), ObjectMeta: meta(r.Name),
			Spec: appsv1.DeploymentConfigSpec{
				Replicas: r.replicas, Selector: r.labels(), Strategy: appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyTypeRecreate},
				Triggers: appsv1.DeploymentTriggerPolicies{{Type: appsv1.DeploymentTriggerOnConfigChange}},
				Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: r.labels()}, Spec: r.pod(nodes)},
			},
		},
	}, nil
}

func (r *Request) labels() map[string]string { return map[string]string{"ipfailover": r.Name} }

// validate checks the flags that the pods themselves do not check. It returns the parsed node
// selector.
func (r *Request) validate() (nodes map[string]string, err error) {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if messages := validation.IsDNS1123Label(r.Name); len(messages) > 0 || len(r.Name) > 40 {
		problem("parse name %q: must be at most 40 lower-case letters, digits and dashes", r.Name)
	}
	if r.kind != "keepalived" {
		problem("parse --type %q: must be keepalived", r.kind)
	}
	if nodes, err = labels.ConvertSelectorToLabelsMap(r.selector); err != nil {
		problem("parse --selector: %w", err)
	}
	addresses, err := virtualip.Parse(r.addresses)
	if r.addresses == "" {
		problem("you must specify at least one virtual IP address with --virtual-ips")
	} else if err != nil {
		problem("parse --virtual-ips: %w", err)
	}
	groups := len(addresses)
	if r.groups > 0 {
		groups = min(groups, r.groups)
	}
	for _, tt := range []struct {
		flag                    string
		value, minimum, maximum int
	}{
		{"replicas", int(r.replicas), 1, 250}, {"watch-port", r.port, 0, 65535}, {"check-interval", r.interval, 1, 3600}, {"virtual-ip-groups", r.groups, 0, maxID},
	} {
		if tt.value < tt.minimum || tt.value > tt.maximum {
			problem("parse --%s %d: must be from %d to %d", tt.flag, tt.value, tt.minimum, tt.maximum)
		}
	}
	if maximum := max(0, maxID-max(1, groups)); r.offset < 0 || r.offset > maximum {
		problem("The vrrp-id-offset must be in the range 0..%d", maximum)
	}
	if groups > maxID {
		problem("parse --virtual-ips: %d addresses need --virtual-ip-groups of at most %d", groups, maxID)
	}
	for _, script := range [][2]string{{"check-script", r.check}, {"notify-script", r.notify}} {
		if flag, path := script[0], script[1]; path != "" && (!strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \"\n")) {
			problem("parse --%s %q: must be the path of a script in the pods, such as a file of a mounted ConfigMap", flag, path)
		}
	}
	if word, _, _ := strings.Cut(r.preemption, " "); !slices.Contains([]string{"preempt_nodelay", "preempt_delay", "nopreempt"}, word) {
		problem("parse --preemption-strategy %q: must be preempt_nodelay, preempt_delay SECONDS or nopreempt", r.preemption)
	}
	return nodes, errors.Join(problems...)
}

// pod returns the spec of the pods that share the virtual IP addresses. A pod does not change
// anything on its host except the network.
func (r *Request) pod(nodes map[string]string) corev1.PodSpec {
	port := int32(hostPort + r.offset)
	return corev1.PodSpec{
		ServiceAccountName: r.account, DeprecatedServiceAccount: r.account, HostNetwork: true, DNSPolicy: corev1.DNSClusterFirstWithHostNet, NodeSelector: nodes,
		AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](10),
		Containers: []corev1.Container{{
			Name: "ipfailover", Image: r.image(), ImagePullPolicy: corev1.PullIfNotPresent, Env: r.environment(),
			Ports: []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}},
			SecurityContext: &corev1.SecurityContext{
				RunAsUser: ptr.To[int64](0), AllowPrivilegeEscalation: ptr.To(false),
				Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN", "NET_RAW", "NET_BROADCAST"}},
			},
		}},
	}
}

// environment returns the pods' environment variables, with the same names as in OpenShift 3.
func (r *Request) environment() (variables []corev1.EnvVar) {
	for _, variable := range [][2]string{
		{"CONFIG_NAME", r.Name}, {"VIRTUAL_IPS", r.addresses}, {"VIP_GROUPS", strconv.Itoa(r.groups)}, {"NETWORK_INTERFACE", r.device},
		{"MONITOR_PORT", strconv.Itoa(r.port)}, {"VRRP_ID_OFFSET", strconv.Itoa(r.offset)}, {"REPLICA_COUNT", strconv.Itoa(int(r.replicas))},
		{"CHECK_SCRIPT", r.check}, {"CHECK_INTERVAL", strconv.Itoa(r.interval)}, {"NOTIFY_SCRIPT", r.notify}, {"PREEMPTION", r.preemption}, {"IPTABLES_CHAIN", r.chain},
	} {
		variables = append(variables, corev1.EnvVar{Name: "OPENSHIFT_HA_" + variable[0], Value: variable[1]})
	}
	return variables
}

func (r *Request) image() string {
	release := version.Slipway()
	if r.latest {
		release = "latest"
	}
	return strings.NewReplacer("${component}", "keepalived-ipfailover", "${version}", release).Replace(r.images)
}

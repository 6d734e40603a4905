package routerpod

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const (
	// Directories in the pods. certificateDir contains the default certificate. clientDir contains
	// the CA certificates and the revocation list for client certificates. secretDir contains the
	// SSH key for an external load balancer. logDir contains the socket of the syslog container.
	certificateDir = "/etc/pki/tls/private"
	clientDir      = "/etc/pki/tls/client"
	secretDir      = "/etc/secret-volume"
	logDir         = "/var/lib/rsyslog"
	// A terminating pod stops serving when no client has opened a connection for drainPeriod.
	// terminationPeriod is the pod's termination grace period, in seconds.
	drainPeriod, terminationPeriod = "5s", 60
)

// pod returns the pod that runs the router.
func (p *plan) pod() corev1.PodSpec {
	router := corev1.Container{
		Name: "router", Image: p.image(), ImagePullPolicy: corev1.PullIfNotPresent, Env: p.environment(),
		LivenessProbe: p.probe("/healthz", 10), ReadinessProbe: p.probe("/healthz/ready", 2),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
		}},
	}
	if p.kind == f5Router {
		router.Args = []string{"--type=" + f5Router}
	}
	for _, port := range p.ports {
		containerPort := corev1.ContainerPort{ContainerPort: port.container, Protocol: corev1.ProtocolTCP}
		if p.hostNetwork || p.hostPorts {
			containerPort.HostPort = port.host
		}
		router.Ports = append(router.Ports, containerPort)
	}
	statistics := corev1.ContainerPort{Name: "stats", ContainerPort: int32(p.listen()), Protocol: corev1.ProtocolTCP}
	if p.statsOnHost() {
		statistics.HostPort = statistics.ContainerPort
	}
	router.Ports = append(router.Ports, statistics)

	spec := corev1.PodSpec{
		ServiceAccountName: p.account, DeprecatedServiceAccount: p.account, HostNetwork: p.hostNetwork, NodeSelector: p.nodes, TerminationGracePeriodSeconds: ptr.To[int64](terminationPeriod),
	}
	if p.hostNetwork {
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	mount := func(name, path string, source corev1.VolumeSource) corev1.VolumeMount {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		return corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: source.EmptyDir == nil}
	}
	if p.kind == haproxyRouter {
		router.VolumeMounts = append(router.VolumeMounts, mount("server-certificate", certificateDir, corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: p.certificates()},
		}))
	}
	if p.authorities != nil {
		router.VolumeMounts = append(router.VolumeMounts, mount("client-ca", clientDir, corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: p.Name + "-client-ca"}},
		}))
	}
	if p.sshKey != nil {
		files := []corev1.KeyToPath{{Key: "router.pem", Path: "router.pem"}}
		if p.sshHosts != nil {
			files = append(files, corev1.KeyToPath{Key: "known_hosts", Path: "known_hosts"})
		}
		router.VolumeMounts = append(router.VolumeMounts, mount("external-host-private-key-volume", secretDir, corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: p.Name + "-stats", Items: files},
		}))
	}
	spec.Containers = []corev1.Container{router}
	if p.extendedLogging {
		socket := mount("syslog-socket", logDir, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, socket)
		spec.Containers = append(spec.Containers, corev1.Container{
			Name: "syslog", Image: p.image(), ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"syslog", logDir + "/rsyslog.sock"},
			VolumeMounts: []corev1.VolumeMount{socket},
		})
	}
	return spec
}

// probe returns a probe that requests path every period seconds.
func (p *plan) probe(path string, period int32) *corev1.Probe {
	host := ""
	if p.hostNetwork { // a firewall can block the host's other addresses
		host = "localhost"
	}
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(p.listen()), Scheme: corev1.URISchemeHTTP, Host: host}},
		PeriodSeconds:    period,
		TimeoutSeconds:   5,
		FailureThreshold: 3,
	}
}

// environment returns the router's environment variables. Variables with secret values refer to
// keys in the secret.
func (p *plan) environment() (variables []corev1.EnvVar) {
	text := func(n int32) string { return strconv.Itoa(int(n)) }
	flag := func(on bool) string {
		if on {
			return "true"
		}
		return ""
	}
	values := map[string]string{
		"ROUTER_SERVICE_NAME": p.Name, "ROUTER_SERVICE_NAMESPACE": p.Namespace, "ROUTER_METRICS_TYPE": "haproxy", "ROUTER_LISTEN_ADDR": "0.0.0.0:" + strconv.Itoa(p.listen()),
		"ROUTER_SUBDOMAIN": p.subdomain, "ROUTER_CIPHERS": p.ciphers, "ROUTER_CANONICAL_HOSTNAME": p.canonical, "ROUTER_MAX_CONNECTIONS": p.maximum, "ROUTER_THREADS": p.threads,
		"ROUTER_STRICT_SNI": flag(p.strictSNI), "ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK": flag(p.sharedHosts),
	}
	if p.kind == haproxyRouter {
		sni, noSNI := p.tlsPorts()
		maps.Copy(values, map[string]string{
			"DEFAULT_CERTIFICATE_DIR": certificateDir, "ROUTER_GRACEFUL_SHUTDOWN_DELAY": drainPeriod,
			"ROUTER_SERVICE_HTTP_PORT": text(p.ports[0].container), "ROUTER_SERVICE_HTTPS_PORT": text(p.ports[1].container),
			"ROUTER_SERVICE_SNI_PORT": text(sni), "ROUTER_SERVICE_NO_SNI_PORT": text(noSNI),
		})
	}
	if p.forceSubdomain != "" {
		values["ROUTER_SUBDOMAIN"], values["ROUTER_OVERRIDE_HOSTNAME"] = p.forceSubdomain, "true"
	}
	if p.OwnProject {
		values["ROUTER_WATCH_NAMESPACE"] = p.Namespace
	}
	if p.clientAuthentication != "none" {
		values["ROUTER_MUTUAL_TLS_AUTH"], values["ROUTER_MUTUAL_TLS_AUTH_CA"] = p.clientAuthentication, clientDir+"/ca.pem"
		values["ROUTER_MUTUAL_TLS_AUTH_FILTER"] = p.clientFilter
		if p.revoked != nil {
			values["ROUTER_MUTUAL_TLS_AUTH_CRL"] = clientDir + "/crl.pem"
		}
	}
	if p.extendedLogging {
		values["ROUTER_SYSLOG_ADDRESS"], values["ROUTER_LOG_LEVEL"] = logDir+"/rsyslog.sock", "debug"
	}
	for name, value := range p.external {
		values[name] = *value
	}
	if p.sshKey != nil {
		values["ROUTER_EXTERNAL_HOST_PRIVKEY"] = secretDir + "/router.pem"
		if p.sshHosts != nil {
			values["ROUTER_EXTERNAL_HOST_KNOWN_HOSTS"] = secretDir + "/known_hosts"
		}
	}
	secret := map[string]string{}
	if p.externalPassword != "" {
		secret["ROUTER_EXTERNAL_HOST_PASSWORD"] = "external-host-password"
	}
	if p.statsPort != 0 {
		values["STATS_PORT"] = strconv.Itoa(p.statsPort)
		secret["STATS_USERNAME"], secret["STATS_PASSWORD"] = "username", "password"
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" {
			variables = append(variables, corev1.EnvVar{Name: name, Value: values[name]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		variables = append(variables, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: p.Name + "-stats"}, Key: secret[name],
		}}})
	}
	return variables
}

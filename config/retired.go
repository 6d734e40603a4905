package config

// retiredMasterKeys returns MasterConfig keys that a release of OpenShift 3 wrote but that the
// types no longer have. The decoder accepts these keys, so that an upgraded cluster's files can be
// loaded. Ignored reports them. A NodeConfig has no such keys.
func retiredMasterKeys() map[string]bool {
	return map[string]bool{
		// The web console became a deployment in 3.9.
		"assetConfig": true,
		// This key was replaced by controllerConfig.election.
		"controllerLeaseTTL": true,
		"pauseControllers":   true,
		// Features were compiled in starting with 3.6.
		"disabledFeatures": true,
		// The addresses of kubelets are read from Node objects.
		"kubeletClientInfo.preferredAddressTypes": true,
		// Since 3.9, admissionConfig applies to all groups.
		"kubernetesMasterConfig.admissionConfig": true,
		"kubernetesMasterConfig.masterCount":     true,
		"kubernetesMasterConfig.staticNodeNames": true,
		// Since 3.9, OpenShift has not supported a Kubernetes control plane outside the master.
		"masterClients.externalKubernetesClientConnectionOverrides": true,
		"masterClients.externalKubernetesKubeConfig":                true,
		// Bootstrap roles and namespaces have fixed names.
		"policyConfig.bootstrapPolicyFile":               true,
		"policyConfig.openshiftInfrastructureNamespace":  true,
		"policyConfig.openshiftSharedResourcesNamespace": true,
	}
}

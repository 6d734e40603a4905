package config

// retiredMasterKeys are MasterConfig keys that some release of OpenShift 3 wrote and that the types
// no longer have. The decoder accepts them so that files of an upgraded cluster load, and Ignored
// reports them. A NodeConfig has no such keys.
func retiredMasterKeys() map[string]bool {
	return map[string]bool{
		// The web console became a deployment in 3.9.
		"assetConfig": true,
		// controllerConfig.election replaced the key.
		"controllerLeaseTTL": true,
		"pauseControllers":   true,
		// Features were compiled in from 3.6 on.
		"disabledFeatures": true,
		// Node objects provide the addresses of kubelets.
		"kubeletClientInfo.preferredAddressTypes": true,
		// Since 3.9, admissionConfig applies to all groups.
		"kubernetesMasterConfig.admissionConfig": true,
		"kubernetesMasterConfig.masterCount":     true,
		"kubernetesMasterConfig.staticNodeNames": true,
		// OpenShift has not supported a Kubernetes outside of the master since 3.9.
		"masterClients.externalKubernetesClientConnectionOverrides": true,
		"masterClients.externalKubernetesKubeConfig":                true,
		// Bootstrap roles and namespaces have fixed names.
		"policyConfig.bootstrapPolicyFile":               true,
		"policyConfig.openshiftInfrastructureNamespace":  true,
		"policyConfig.openshiftSharedResourcesNamespace": true,
	}
}

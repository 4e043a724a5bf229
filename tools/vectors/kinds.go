package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Kind is a kind of Kubernetes and how its strategies reset fields.
type Kind struct {
	group, version, kind string
	// The main resource resets status, and the status subresource spec and these.
	hasStatus   bool
	statusReset [][]string
	cluster     bool
	weight      int
}

var kinds = []Kind{
	{"apps", "v1", "Deployment", true, [][]string{{"metadata", "labels"}}, false, 4},
	{"apps", "v1", "StatefulSet", true, nil, false, 2},
	{"apps", "v1", "DaemonSet", true, nil, false, 1},
	{"batch", "v1", "Job", true, nil, false, 2},
	{"batch", "v1", "CronJob", true, nil, false, 1},
	{"", "v1", "Pod", true, [][]string{{"metadata", "deletionTimestamp"}, {"metadata", "ownerReferences"}}, false, 4},
	{"", "v1", "Service", true, nil, false, 4},
	{"", "v1", "ConfigMap", false, nil, false, 2},
	{"", "v1", "Secret", false, nil, false, 1},
	{"", "v1", "ServiceAccount", false, nil, false, 2},
	{"networking.k8s.io", "v1", "Ingress", true, nil, false, 2},
	{"networking.k8s.io", "v1", "NetworkPolicy", false, nil, false, 1},
	{"autoscaling", "v2", "HorizontalPodAutoscaler", true, nil, false, 1},
	{"policy", "v1", "PodDisruptionBudget", true, nil, false, 2},
	{"", "v1", "PersistentVolumeClaim", true, nil, false, 2},
	{"rbac.authorization.k8s.io", "v1", "Role", false, nil, false, 1},
	{"rbac.authorization.k8s.io", "v1", "RoleBinding", false, nil, false, 1},
	{"rbac.authorization.k8s.io", "v1", "ClusterRole", false, nil, true, 1},
	{"", "v1", "Namespace", true, nil, true, 1},
	{"", "v1", "Node", true, nil, true, 2},
}

// The types that client-go publishes are those of the server's OpenAPI documents, so no server is needed.
var converter managedfields.TypeConverter = applyconfigurations.NewTypeConverter(scheme.Scheme)

func (k Kind) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind}
}

func (k Kind) apiVersion() string { return k.gvk().GroupVersion().String() }

func (k Kind) record() map[string]string {
	return map[string]string{"group": k.group, "version": k.version, "kind": k.kind}
}

func (k Kind) resetFields() map[string][][]string {
	if !k.hasStatus {
		return nil
	}
	return map[string][][]string{
		"":       {{"status"}},
		"status": append([][]string{{"spec"}}, k.statusReset...),
	}
}

func (k Kind) empty() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.apiVersion(), "kind": k.kind}}
}

func (k Kind) parseable() typed.ParseableType {
	value, err := converter.ObjectToTyped(k.empty())
	if err != nil {
		panic(fmt.Sprintf("%s: %v", k.kind, err))
	}
	return typed.ParseableType{Schema: value.Schema(), TypeRef: value.TypeRef()}
}

// identify gives an object the names that every write to it must have.
func (k Kind) identify(value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	object["apiVersion"], object["kind"] = k.apiVersion(), k.kind
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	metadata["name"] = "x"
	delete(metadata, "managedFields")
	if !k.cluster {
		metadata["namespace"] = "n"
	}
	return object
}

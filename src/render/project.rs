//! Renders Projects: the namespace, its role bindings, quota, limits and network policy.

use serde_json::{Value, json};

use super::definitions::AppDefinedKinds;
use super::documents;
use super::object_document::ObjectDocument;
use super::render_job::RenderJob;
use super::render_output::ObjectsById;
use crate::model::{Diagnostic, MemberRole, MemberSubject, Project};

/// The name of objects that exist once in a namespace.
const NAME: &str = "project";
const RBAC: &str = "rbac.authorization.k8s.io";

pub fn render(job: &RenderJob<'_>, project: &Project) -> Result<ObjectsById, Vec<Diagnostic>> {
    let mut found = ObjectsById::new();
    let mut wrong = Vec::new();
    for object in objects(project) {
        let Value::Object(object) = object else { continue };
        let document = ObjectDocument::new(object, job.app.location.clone());
        match documents::finish_object(job, document, &AppDefinedKinds::default()) {
            Ok(object) => {
                found.insert(object.id.clone(), (object, String::new()));
            }
            Err(mut mistakes) => wrong.append(&mut mistakes),
        }
    }
    if wrong.is_empty() { Ok(found) } else { Err(wrong) }
}

fn objects(project: &Project) -> Vec<Value> {
    let metadata = |name: &str| json!({"name": name, "namespace": project.namespace});
    let mut objects = vec![json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": project.namespace, "labels": project.labels, "annotations": project.annotations,
        },
    })];
    // A roleRef is immutable, so each role has one binding for all members.
    for role in MemberRole::ALL {
        let of_role = project.members.iter().filter(|member| member.role == role);
        let subjects: Vec<Value> = of_role.map(|member| subject(&member.subject)).collect();
        if !subjects.is_empty() {
            objects.push(json!({
                "apiVersion": format!("{RBAC}/v1"),
                "kind": "RoleBinding",
                "metadata": metadata(&format!("{NAME}-{}", role.as_str())),
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role.as_str()},
                "subjects": subjects,
            }));
        }
    }
    if !project.quota.is_empty() {
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": metadata(NAME),
            "spec": {"hard": project.quota},
        }));
    }
    if !project.limits.is_empty() {
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": metadata(NAME),
            "spec": {"limits": project.limits},
        }));
    }
    if project.isolated {
        objects.push(json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata(NAME),
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": {}}]}],
            },
        }));
    }
    objects
}

fn subject(subject: &MemberSubject) -> Value {
    match subject {
        MemberSubject::User(name) => json!({"apiGroup": RBAC, "kind": "User", "name": name}),
        MemberSubject::Group(name) => json!({"apiGroup": RBAC, "kind": "Group", "name": name}),
        MemberSubject::ServiceAccount { namespace, name } => {
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fleet::{Target, assemble};
    use crate::manifest;
    use crate::model::{AppId, NoCharts, Snapshot};
    use crate::render::render;

    const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: {}}}\n";
    const SHOP: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Project
metadata: {name: shop}
spec:
  namespace: store
  labels: {team: shop}
  annotations: {owner: shop@example.com}
  members:
    - {group: shop-developers, role: edit}
    - {serviceAccount: ci/deployer, role: edit}
    - {user: jane, role: admin}
    - {serviceAccount: viewer, role: view}
  quota: {requests.cpu: 20, pods: '100'}
  limits: {default: {cpu: 500m, memory: 256Mi}}
  networkPolicy: isolate
";

    /// One line for each object, without common labels and annotations.
    fn rendered(project: &str, name: &str) -> Vec<String> {
        let snapshot = Snapshot::of_texts([("clusters/bj1.yaml", CLUSTER), ("projects/a.yaml", project)]);
        let fleet = assemble(manifest::read(&snapshot), &snapshot);
        assert!(fleet.is_valid(), "{:#?}", fleet.diagnostics);
        let target = Target { app: AppId::of_project(name), cluster: "bj1".into() };
        let rendered =
            render(&fleet, &snapshot, &NoCharts, &target).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
        let line = |object: &crate::model::RenderedObject| {
            let mut body = object.body.fields();
            for field in ["labels", "annotations"] {
                let Some(map) = body["metadata"][field].as_object_mut() else { panic!("{body}") };
                map.retain(|key, _| !key.starts_with("tutti.dev/"));
            }
            body.to_string().replace(",\"labels\":{},\"annotations\":{}", "").replace('"', "")
        };
        rendered.objects.iter().map(line).collect()
    }

    #[test]
    fn project_renders_namespace_roles_and_limits() {
        let expected = [
            "{apiVersion:v1,kind:LimitRange,metadata:{name:project,namespace:store},\
             spec:{limits:[{default:{cpu:500m,memory:256Mi},type:Container}]}}",
            "{apiVersion:v1,kind:Namespace,metadata:{name:store,labels:{team:shop},\
             annotations:{owner:shop@example.com}}}",
            "{apiVersion:v1,kind:ResourceQuota,metadata:{name:project,namespace:store},\
             spec:{hard:{pods:100,requests.cpu:20}}}",
            "{apiVersion:networking.k8s.io/v1,kind:NetworkPolicy,metadata:{name:project,namespace:store},\
             spec:{podSelector:{},policyTypes:[Ingress],ingress:[{from:[{podSelector:{}}]}]}}",
            "{apiVersion:rbac.authorization.k8s.io/v1,kind:RoleBinding,metadata:{name:project-admin,namespace:store},\
             roleRef:{apiGroup:rbac.authorization.k8s.io,kind:ClusterRole,name:admin},\
             subjects:[{apiGroup:rbac.authorization.k8s.io,kind:User,name:jane}]}",
            "{apiVersion:rbac.authorization.k8s.io/v1,kind:RoleBinding,metadata:{name:project-edit,namespace:store},\
             roleRef:{apiGroup:rbac.authorization.k8s.io,kind:ClusterRole,name:edit},\
             subjects:[{apiGroup:rbac.authorization.k8s.io,kind:Group,name:shop-developers},\
             {kind:ServiceAccount,name:deployer,namespace:ci}]}",
            "{apiVersion:rbac.authorization.k8s.io/v1,kind:RoleBinding,metadata:{name:project-view,namespace:store},\
             roleRef:{apiGroup:rbac.authorization.k8s.io,kind:ClusterRole,name:view},\
             subjects:[{kind:ServiceAccount,name:viewer,namespace:store}]}",
        ];
        assert_eq!(rendered(SHOP, "shop"), expected);
    }

    #[test]
    fn empty_project_renders_namespace() {
        let project = "apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {name: pay}\n";
        assert_eq!(rendered(project, "pay"), ["{apiVersion:v1,kind:Namespace,metadata:{name:pay}}"]);
    }
}

//! Metadata: first resourceVersion and generation, which every write changes, then the rest.

use endpointd_model::{Meta, OwnerRef};

use super::Identity;
use super::columns::Column;
use super::reader::Reader;
use super::writer::{Writer, uuid_bit};

impl<'a> Writer<'a> {
    /// Returns the offset of the content after it.
    pub fn encode_version(&mut self, meta: &'a Meta) -> u32 {
        self.number(meta.resource_version.number());
        self.optional(meta.generation, Self::signed);
        self.n_bytes() as u32
    }

    pub fn meta(&mut self, meta: &'a Meta) {
        let Meta {
            namespace: _,
            name: _,
            generate_name,
            uid: _,
            resource_version: _,
            generation: _,
            created,
            deleted,
            deletion_grace_secs,
            labels,
            annotations,
            owners,
            finalizers,
        } = meta;
        self.optional_string(Column::Name, generate_name.as_ref());
        self.optional(*created, Self::timestamp);
        self.optional(*deleted, Self::timestamp);
        self.optional(*deletion_grace_secs, Self::signed);
        self.labels(labels);
        self.labels(annotations);
        self.count(owners.len());
        owners.iter().for_each(|owner| self.owner(owner));
        self.strings(Column::Other, finalizers);
    }

    fn owner(&mut self, owner: &'a OwnerRef) {
        let OwnerRef { api_version, kind, name, uid, controller, block_owner_deletion } = owner;
        self.string(Column::ApiVersion, api_version);
        self.string(Column::Kind, kind);
        self.string(Column::Name, name);
        self.byte(uuid_bit(uid));
        self.uid(uid);
        self.optional(*controller, Self::flag);
        self.optional(*block_owner_deletion, Self::flag);
    }
}

impl Reader<'_> {
    pub fn meta(&mut self, identity: &Identity<'_>) -> Meta {
        let resource_version = self.number().into();
        let generation = self.optional(Self::signed);
        Meta {
            namespace: identity.namespace.clone(),
            name: identity.name.clone(),
            generate_name: self.optional_string(Column::Name),
            uid: identity.uid.clone(),
            resource_version,
            generation,
            created: self.optional(Self::timestamp),
            deleted: self.optional(Self::timestamp),
            deletion_grace_secs: self.optional(Self::signed),
            labels: self.labels(),
            annotations: self.labels(),
            owners: self.list(Self::owner),
            finalizers: self.list(|reader| reader.string(Column::Other)),
        }
    }

    fn owner(&mut self) -> OwnerRef {
        OwnerRef {
            api_version: self.string(Column::ApiVersion),
            kind: self.string(Column::Kind),
            name: self.string(Column::Name),
            uid: {
                let bits = self.byte();
                self.uid(bits)
            },
            controller: self.optional(Self::flag),
            block_owner_deletion: self.optional(Self::flag),
        }
    }
}

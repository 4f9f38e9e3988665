"""Every column of PostgreSQL's catalogues that can hold what a login wrote or was answered, and why it does not show.

Of the versions 15 to 18. A column that is not here is a question to be answered before that version is served.
"""

from __future__ import annotations

#: Types that hold texts, expressions, names of others, or numbers of rows.
KINDS = ("pg_node_tree", "text", "text[]", "name", "name[]", "real", "real[]", "anyarray", "aclitem", "aclitem[]",
         "bytea", "pg_ndistinct", "pg_dependencies", "pg_mcv_list")  # fmt: skip

_NAMES = "names of relations, columns, constraints and types: they show, and say what a login calls things"
_REFUSED = "what a command would write here is refused when it ends (`front/temporary`)"
_NOBODY = "no login can make such an object: PostgreSQL denies it, or the command is refused"
_ACL = "who may do what: names of logins"
_OPTIONS = "numbers and words of a closed list: fillfactor and its like"

REASONS: dict[str, tuple[str, ...]] = {
    _NAMES: ("pg_attribute.attname", "pg_class.relname", "pg_constraint.conname", "pg_type.typname",
             "pg_rewrite.rulename", "pg_trigger.tgname", "pg_namespace.nspname"),
    _REFUSED: (
        "pg_attrdef.adbin", "pg_attribute.attmissingval", "pg_constraint.conbin", "pg_class.relpartbound",
        "pg_index.indexprs", "pg_index.indpred", "pg_partitioned_table.partexprs", "pg_description.description",
        "pg_enum.enumsortorder", "pg_enum.enumlabel", "pg_policy.polname", "pg_policy.polqual",
        "pg_policy.polwithcheck",
        "pg_statistic_ext.stxname", "pg_statistic_ext.stxexprs", "pg_trigger.tgargs", "pg_trigger.tgqual",
        "pg_trigger.tgoldtable", "pg_trigger.tgnewtable", "pg_type.typdefaultbin", "pg_type.typdefault",
        "pg_ts_config.cfgname", "pg_ts_dict.dictname", "pg_ts_dict.dictinitoption", "pg_ts_parser.prsname",
        "pg_ts_template.tmplname", "pg_collation.collname", "pg_collation.collcollate", "pg_collation.collctype",
        "pg_collation.collversion", "pg_collation.colliculocale", "pg_collation.colllocale",
        "pg_collation.collicurules", "pg_operator.oprname", "pg_opclass.opcname", "pg_opfamily.opfname",
        "pg_conversion.conname", "pg_default_acl.defaclacl",
    ),
    "ANALYZE is refused, and what an index counts is forgotten when its command ends": ("pg_class.reltuples",),
    "the stored query of views is kept from logins (`front/definitions`)": (
        "pg_rewrite.ev_qual", "pg_rewrite.ev_action",
    ),
    "only PostgreSQL's own administrator reads it": (
        "pg_authid.rolname", "pg_authid.rolpassword", "pg_largeobject.data", "pg_user_mapping.umoptions",
        "pg_statistic.stanullfrac", "pg_statistic.stadistinct",
        *(f"pg_statistic.sta{what}{n}" for what in ("numbers", "values") for n in range(1, 6)),
        "pg_statistic_ext_data.stxdndistinct", "pg_statistic_ext_data.stxddependencies",
        "pg_statistic_ext_data.stxdmcv", "pg_subscription.subconninfo",
    ),
    _ACL: ("pg_attribute.attacl", "pg_class.relacl", "pg_type.typacl", "pg_database.datacl", "pg_namespace.nspacl"),
    _OPTIONS: ("pg_attribute.attoptions", "pg_class.reloptions"),
    "the operator's: the same for all logins": (
        "pg_database.datname", "pg_database.datcollate", "pg_database.datctype", "pg_database.daticulocale",
        "pg_database.datlocale", "pg_database.daticurules", "pg_database.datcollversion", "pg_tablespace.spcname",
        "pg_tablespace.spcacl", "pg_tablespace.spcoptions", "pg_db_role_setting.setconfig",
        "pg_shdescription.description",
    ),
    _NOBODY: (
        "pg_aggregate.agginitval", "pg_aggregate.aggminitval", "pg_am.amname", "pg_attribute.attfdwoptions",
        "pg_event_trigger.evtname", "pg_event_trigger.evtevent", "pg_event_trigger.evttags", "pg_extension.extname",
        "pg_extension.extversion", "pg_extension.extcondition", "pg_foreign_data_wrapper.fdwname",
        "pg_foreign_data_wrapper.fdwacl", "pg_foreign_data_wrapper.fdwoptions", "pg_foreign_server.srvname",
        "pg_foreign_server.srvtype", "pg_foreign_server.srvversion", "pg_foreign_server.srvacl",
        "pg_foreign_server.srvoptions", "pg_foreign_table.ftoptions", "pg_init_privs.initprivs", "pg_language.lanname",
        "pg_language.lanacl", "pg_largeobject_metadata.lomacl", "pg_parameter_acl.parname", "pg_parameter_acl.paracl",
        "pg_proc.proname", "pg_proc.procost", "pg_proc.prorows", "pg_proc.proargnames", "pg_proc.proargdefaults",
        "pg_proc.prosrc", "pg_proc.probin", "pg_proc.prosqlbody", "pg_proc.proconfig", "pg_proc.proacl",
        "pg_publication.pubname", "pg_publication_rel.prqual", "pg_replication_origin.roname", "pg_seclabel.provider",
        "pg_seclabel.label", "pg_shseclabel.provider", "pg_shseclabel.label", "pg_subscription.subname",
        "pg_subscription.subslotname", "pg_subscription.subsynccommit", "pg_subscription.subpublications",
        "pg_subscription.suborigin",
    ),
}  # fmt: skip
KNOWN = frozenset(column for columns in REASONS.values() for column in columns)

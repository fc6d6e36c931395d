//! Interfaces with their operations, from the vendor's open specifications (MS-RPCE, MS-SCMR, MS-SRVS, MS-WKST, MS-SAMR, MS-LSAD,
//! MS-NRPC, MS-DRSR, MS-RRP, MS-TSCH, MS-RPRN, MS-DCOM, MS-WMI, MS-OXCRPC, MS-OXNSPI, MS-EVEN, MS-EFSR, MS-DFSNM, MS-WCCE,
//! MS-DNSP) and C706, in the order of their identifiers.

/// An interface.
pub(super) struct Interface {
    /// Identifier as a number.
    pub(super) uuid: u128,
    pub(super) name: &'static str,
    /// Number of the first operation that is listed.
    first: u16,
    /// Names of operations with spaces between them; `-` for one without a name.
    operations: &'static str,
}

impl Interface {
    /// Returns the interface with an identifier.
    pub(super) fn of(uuid: u128) -> Option<&'static Self> {
        INTERFACES.get(INTERFACES.binary_search_by_key(&uuid, |interface| interface.uuid).ok()?)
    }

    /// Returns the name of an operation.
    pub(super) fn operation(&self, number: u16) -> Option<&'static str> {
        let place = number.checked_sub(self.first)?;
        self.operations.split(' ').nth(place.into()).filter(|name| *name != "-")
    }
}

const INTERFACES: &[Interface] = &[
    Interface {
        uuid: 0x00000131_0000_0000_c000_000000000046,
        name: "IRemUnknown",
        first: 3,
        operations: "RemQueryInterface RemAddRef RemRelease",
    },
    Interface {
        uuid: 0x00000143_0000_0000_c000_000000000046,
        name: "IRemUnknown2",
        first: 3,
        operations: "RemQueryInterface RemAddRef RemRelease RemQueryInterface2",
    },
    Interface {
        uuid: 0x000001a0_0000_0000_c000_000000000046,
        name: "ISystemActivator",
        first: 3,
        operations: "RemoteGetClassObject RemoteCreateInstance",
    },
    Interface {
        uuid: 0x12345678_1234_abcd_ef00_0123456789ab,
        name: "spoolss",
        first: 0,
        operations: "RpcEnumPrinters RpcOpenPrinter RpcSetJob RpcGetJob RpcEnumJobs RpcAddPrinter RpcDeletePrinter \
            RpcSetPrinter RpcGetPrinter RpcAddPrinterDriver RpcEnumPrinterDrivers RpcGetPrinterDriver \
            RpcGetPrinterDriverDirectory RpcDeletePrinterDriver RpcAddPrintProcessor RpcEnumPrintProcessors \
            RpcGetPrintProcessorDirectory RpcStartDocPrinter RpcStartPagePrinter RpcWritePrinter RpcEndPagePrinter \
            RpcAbortPrinter RpcReadPrinter RpcEndDocPrinter RpcAddJob RpcScheduleJob RpcGetPrinterData \
            RpcSetPrinterData RpcWaitForPrinterChange RpcClosePrinter RpcAddForm RpcDeleteForm RpcGetForm RpcSetForm \
            RpcEnumForms RpcEnumPorts RpcEnumMonitors",
    },
    Interface {
        uuid: 0x12345678_1234_abcd_ef00_01234567cffb,
        name: "netlogon",
        first: 0,
        operations: "NetrLogonUasLogon NetrLogonUasLogoff NetrLogonSamLogon NetrLogonSamLogoff NetrServerReqChallenge \
            NetrServerAuthenticate NetrServerPasswordSet NetrDatabaseDeltas NetrDatabaseSync NetrAccountDeltas \
            NetrAccountSync NetrGetDCName NetrLogonControl NetrGetAnyDCName NetrLogonControl2 \
            NetrServerAuthenticate2 NetrDatabaseSync2 NetrDatabaseRedo NetrLogonControl2Ex \
            NetrEnumerateTrustedDomains DsrGetDcName NetrLogonGetCapabilities NetrLogonSetServiceBits \
            NetrLogonGetTrustRid NetrLogonComputeServerDigest NetrLogonComputeClientDigest NetrServerAuthenticate3 \
            DsrGetDcNameEx DsrGetSiteName NetrLogonGetDomainInfo NetrServerPasswordSet2 NetrServerPasswordGet \
            NetrLogonSendToSam DsrAddressToSiteNamesW DsrGetDcNameEx2 NetrLogonGetTimeServiceParentDomain \
            NetrEnumerateTrustedDomainsEx DsrAddressToSiteNamesExW DsrGetDcSiteCoverageW NetrLogonSamLogonEx \
            DsrEnumerateDomainTrusts DsrDeregisterDnsHostRecords NetrServerTrustPasswordsGet \
            DsrGetForestTrustInformation NetrGetForestTrustInformation NetrLogonSamLogonWithFlags \
            NetrServerGetTrustInfo",
    },
    Interface {
        uuid: 0x12345778_1234_abcd_ef00_0123456789ab,
        name: "lsarpc",
        first: 0,
        operations: "LsarClose LsarDelete LsarEnumeratePrivileges LsarQuerySecurityObject LsarSetSecurityObject \
            LsarChangePassword LsarOpenPolicy LsarQueryInformationPolicy LsarSetInformationPolicy LsarClearAuditLog \
            LsarCreateAccount LsarEnumerateAccounts LsarCreateTrustedDomain LsarEnumerateTrustedDomains \
            LsarLookupNames LsarLookupSids LsarCreateSecret LsarOpenAccount LsarEnumeratePrivilegesAccount \
            LsarAddPrivilegesToAccount LsarRemovePrivilegesFromAccount LsarGetQuotasForAccount \
            LsarSetQuotasForAccount LsarGetSystemAccessAccount LsarSetSystemAccessAccount LsarOpenTrustedDomain \
            LsarQueryInfoTrustedDomain LsarSetInformationTrustedDomain LsarOpenSecret LsarSetSecret LsarQuerySecret \
            LsarLookupPrivilegeValue LsarLookupPrivilegeName LsarLookupPrivilegeDisplayName LsarDeleteObject \
            LsarEnumerateAccountsWithUserRight LsarEnumerateAccountRights LsarAddAccountRights \
            LsarRemoveAccountRights LsarQueryTrustedDomainInfo LsarSetTrustedDomainInfo LsarDeleteTrustedDomain \
            LsarStorePrivateData LsarRetrievePrivateData LsarOpenPolicy2 LsarGetUserName LsarQueryInformationPolicy2 \
            LsarSetInformationPolicy2 LsarQueryTrustedDomainInfoByName LsarSetTrustedDomainInfoByName \
            LsarEnumerateTrustedDomainsEx LsarCreateTrustedDomainEx LsarCloseTrustedDomainEx \
            LsarQueryDomainInformationPolicy LsarSetDomainInformationPolicy LsarOpenTrustedDomainByName LsarTestCall \
            LsarLookupSids2 LsarLookupNames2 LsarCreateTrustedDomainEx2 - - - - - - - - LsarLookupNames3 - - - - \
            LsarQueryForestTrustInformation LsarSetForestTrustInformation - LsarLookupSids3 LsarLookupNames4",
    },
    Interface {
        uuid: 0x12345778_1234_abcd_ef00_0123456789ac,
        name: "samr",
        first: 0,
        operations: "SamrConnect SamrCloseHandle SamrSetSecurityObject SamrQuerySecurityObject SamrShutdownSamServer \
            SamrLookupDomainInSamServer SamrEnumerateDomainsInSamServer SamrOpenDomain SamrQueryInformationDomain \
            SamrSetInformationDomain SamrCreateGroupInDomain SamrEnumerateGroupsInDomain SamrCreateUserInDomain \
            SamrEnumerateUsersInDomain SamrCreateAliasInDomain SamrEnumerateAliasesInDomain SamrGetAliasMembership \
            SamrLookupNamesInDomain SamrLookupIdsInDomain SamrOpenGroup SamrQueryInformationGroup \
            SamrSetInformationGroup SamrAddMemberToGroup SamrDeleteGroup SamrRemoveMemberFromGroup \
            SamrGetMembersInGroup SamrSetMemberAttributesOfGroup SamrOpenAlias SamrQueryInformationAlias \
            SamrSetInformationAlias SamrDeleteAlias SamrAddMemberToAlias SamrRemoveMemberFromAlias \
            SamrGetMembersInAlias SamrOpenUser SamrDeleteUser SamrQueryInformationUser SamrSetInformationUser \
            SamrChangePasswordUser SamrGetGroupsForUser SamrQueryDisplayInformation SamrGetDisplayEnumerationIndex \
            SamrTestPrivateFunctionsDomain SamrTestPrivateFunctionsUser SamrGetUserDomainPasswordInformation \
            SamrRemoveMemberFromForeignDomain SamrQueryInformationDomain2 SamrQueryInformationUser2 \
            SamrQueryDisplayInformation2 SamrGetDisplayEnumerationIndex2 SamrCreateUser2InDomain \
            SamrQueryDisplayInformation3 SamrAddMultipleMembersToAlias SamrRemoveMultipleMembersFromAlias \
            SamrOemChangePasswordUser2 SamrUnicodeChangePasswordUser2 SamrGetDomainPasswordInformation SamrConnect2 \
            SamrSetInformationUser2 SamrSetBootKeyInformation SamrGetBootKeyInformation SamrConnect3 SamrConnect4 \
            SamrUnicodeChangePasswordUser3 SamrConnect5 SamrRidToSid SamrSetDSRMPassword SamrValidatePassword",
    },
    Interface {
        uuid: 0x1544f5e0_613c_11d1_93df_00c04fd7bd09,
        name: "rfr",
        first: 0,
        operations: "RfrGetNewDSA RfrGetFQDNFromServerDN",
    },
    Interface {
        uuid: 0x1ff70682_0a51_30e8_076d_740be8cee98b,
        name: "atsvc",
        first: 0,
        operations: "NetrJobAdd NetrJobDel NetrJobEnum NetrJobGetInfo",
    },
    Interface {
        uuid: 0x338cd001_2244_31f1_aaaa_900038001003,
        name: "winreg",
        first: 0,
        operations: "OpenClassesRoot OpenCurrentUser OpenLocalMachine OpenPerformanceData OpenUsers BaseRegCloseKey \
            BaseRegCreateKey BaseRegDeleteKey BaseRegDeleteValue BaseRegEnumKey BaseRegEnumValue BaseRegFlushKey \
            BaseRegGetKeySecurity BaseRegLoadKey BaseRegNotifyChangeKeyValue BaseRegOpenKey BaseRegQueryInfoKey \
            BaseRegQueryValue BaseRegReplaceKey BaseRegRestoreKey BaseRegSaveKey BaseRegSetKeySecurity \
            BaseRegSetValue BaseRegUnLoadKey BaseInitiateSystemShutdown BaseAbortSystemShutdown BaseRegGetVersion \
            OpenCurrentConfig OpenDynData BaseRegQueryMultipleValues BaseInitiateSystemShutdownEx BaseRegSaveKeyEx \
            OpenPerformanceText OpenPerformanceNlsText BaseRegQueryMultipleValues2 BaseRegDeleteKeyEx",
    },
    Interface {
        uuid: 0x367abb81_9844_35f1_ad32_98f038001003,
        name: "svcctl",
        first: 0,
        operations: "CloseServiceHandle ControlService DeleteService LockServiceDatabase QueryServiceObjectSecurity \
            SetServiceObjectSecurity QueryServiceStatus SetServiceStatus UnlockServiceDatabase \
            NotifyBootConfigStatus ScSetServiceBitsW ChangeServiceConfigW CreateServiceW EnumDependentServicesW \
            EnumServicesStatusW OpenSCManagerW OpenServiceW QueryServiceConfigW QueryServiceLockStatusW \
            StartServiceW GetServiceDisplayNameW GetServiceKeyNameW ScSetServiceBitsA ChangeServiceConfigA \
            CreateServiceA EnumDependentServicesA EnumServicesStatusA OpenSCManagerA OpenServiceA \
            QueryServiceConfigA QueryServiceLockStatusA StartServiceA GetServiceDisplayNameA GetServiceKeyNameA \
            ScGetCurrentGroupStateW EnumServiceGroupW ChangeServiceConfig2A ChangeServiceConfig2W \
            QueryServiceConfig2A QueryServiceConfig2W QueryServiceStatusEx EnumServicesStatusExA \
            EnumServicesStatusExW ScSendTSMessage CreateServiceWOW64A CreateServiceWOW64W ScQueryServiceTagInfo \
            NotifyServiceStatusChange GetNotifyResults CloseNotifyHandle ControlServiceExA ControlServiceExW \
            ScSendPnPMessage ScValidatePnPService ScOpenServiceStatusHandle",
    },
    Interface {
        uuid: 0x3919286a_b10c_11d0_9ba8_00c04fd92ef5,
        name: "dssetup",
        first: 0,
        operations: "DsRolerGetPrimaryDomainInformation DsRolerDnsNameToFlatName DsRolerDcAsDc DsRolerDcAsReplica \
            DsRolerDemoteDc DsRolerGetDcOperationProgress DsRolerGetDcOperationResults DsRolerCancel \
            DsRolerServerSaveStateForUpgrade DsRolerUpgradeDownlevelServer DsRolerAbortDownlevelServerUpgrade",
    },
    Interface {
        uuid: 0x4b324fc8_1670_01d3_1278_5a47bf6ee188,
        name: "srvsvc",
        first: 0,
        operations: "NetrCharDevEnum NetrCharDevGetInfo NetrCharDevControl NetrCharDevQEnum NetrCharDevQGetInfo \
            NetrCharDevQSetInfo NetrCharDevQPurge NetrCharDevQPurgeSelf NetrConnectionEnum NetrFileEnum \
            NetrFileGetInfo NetrFileClose NetrSessionEnum NetrSessionDel NetrShareAdd NetrShareEnum NetrShareGetInfo \
            NetrShareSetInfo NetrShareDel NetrShareDelSticky NetrShareCheck NetrServerGetInfo NetrServerSetInfo \
            NetrServerDiskEnum NetrServerStatisticsGet NetrServerTransportAdd NetrServerTransportEnum \
            NetrServerTransportDel NetrRemoteTOD NetrServerSetServiceBits NetprPathType NetprPathCanonicalize \
            NetprPathCompare NetprNameValidate NetprNameCanonicalize NetprNameCompare NetrShareEnumSticky \
            NetrShareDelStart NetrShareDelCommit NetrpGetFileSecurity NetrpSetFileSecurity NetrServerTransportAddEx \
            NetrServerSetServiceBitsEx NetrDfsGetVersion NetrDfsCreateLocalPartition NetrDfsDeleteLocalPartition \
            NetrDfsSetLocalVolumeState NetrDfsSetServerInfo NetrDfsCreateExitPoint NetrDfsDeleteExitPoint \
            NetrDfsModifyPrefix NetrDfsFixLocalVolume NetrDfsManagerReportSiteInfo NetrServerTransportDelEx",
    },
    Interface {
        uuid: 0x4fc742e0_4a10_11cf_8273_00aa004ae673,
        name: "netdfs",
        first: 0,
        operations: "NetrDfsManagerGetVersion NetrDfsAdd NetrDfsRemove NetrDfsSetInfo NetrDfsGetInfo NetrDfsEnum NetrDfsMove \
            NetrDfsManagerGetConfigInfo NetrDfsManagerSendSiteInfo NetrDfsAddFtRoot NetrDfsRemoveFtRoot \
            NetrDfsAddStdRoot NetrDfsRemoveStdRoot NetrDfsManagerInitialize NetrDfsAddStdRootForced",
    },
    Interface {
        uuid: 0x50abc2a4_574d_40b3_9d66_ee4fd5fba076,
        name: "DnsServer",
        first: 0,
        operations: "R_DnssrvOperation R_DnssrvQuery R_DnssrvComplexOperation R_DnssrvEnumRecords R_DnssrvUpdateRecord \
            R_DnssrvOperation2 R_DnssrvQuery2 R_DnssrvComplexOperation2 R_DnssrvEnumRecords2 R_DnssrvUpdateRecord2",
    },
    Interface {
        uuid: 0x6bffd098_a112_3610_9833_46c3f87e345a,
        name: "wkssvc",
        first: 0,
        operations: "NetrWkstaGetInfo NetrWkstaSetInfo NetrWkstaUserEnum NetrWkstaUserGetInfo NetrWkstaUserSetInfo \
            NetrWkstaTransportEnum NetrWkstaTransportAdd NetrWkstaTransportDel NetrUseAdd NetrUseGetInfo NetrUseDel \
            NetrUseEnum NetrMessageBufferSend NetrWorkstationStatisticsGet NetrLogonDomainNameAdd \
            NetrLogonDomainNameDel NetrJoinDomain NetrUnjoinDomain NetrRenameMachineInDomain NetrValidateName \
            NetrGetJoinInformation NetrGetJoinableOUs NetrJoinDomain2 NetrUnjoinDomain2 NetrRenameMachineInDomain2 \
            NetrValidateName2 NetrGetJoinableOUs2 NetrAddAlternateComputerName NetrRemoveAlternateComputerName \
            NetrSetPrimaryComputerName NetrEnumerateComputerNames",
    },
    Interface {
        uuid: 0x82273fdc_e32a_18c3_3f78_827929dc23ea,
        name: "eventlog",
        first: 0,
        operations: "ElfrClearELFW ElfrBackupELFW ElfrCloseEL ElfrDeregisterEventSource ElfrNumberOfRecords ElfrOldestRecord \
            ElfrChangeNotify ElfrOpenELW ElfrRegisterEventSourceW ElfrOpenBELW ElfrReadELW ElfrReportEventW",
    },
    Interface {
        uuid: 0x86d35949_83c9_4044_b424_db363231fd0c,
        name: "ITaskSchedulerService",
        first: 0,
        operations: "SchRpcHighestVersion SchRpcRegisterTask SchRpcRetrieveTask SchRpcCreateFolder SchRpcSetSecurity \
            SchRpcGetSecurity SchRpcEnumFolders SchRpcEnumTasks SchRpcEnumInstances SchRpcGetInstanceInfo \
            SchRpcStopInstance SchRpcStop SchRpcRun SchRpcDelete SchRpcRename SchRpcScheduledRuntimes \
            SchRpcGetLastRunInfo SchRpcGetTaskInfo SchRpcGetNumberOfMissedRuns SchRpcEnableTask",
    },
    Interface {
        uuid: 0x894de0c0_0d55_11d3_a322_00c04fa321a1,
        name: "InitShutdown",
        first: 0,
        operations: "BaseInitiateShutdown BaseAbortShutdown BaseInitiateShutdownEx",
    },
    Interface {
        uuid: 0x91ae6020_9e3c_11cf_8d7c_00aa00c091be,
        name: "ICertPassage",
        first: 0,
        operations: "CertServerRequest",
    },
    Interface {
        uuid: 0x9556dc99_828c_11cf_a37e_00aa003240c7,
        name: "IWbemServices",
        first: 3,
        operations: "OpenNamespace CancelAsyncCall QueryObjectSink GetObject GetObjectAsync PutClass PutClassAsync \
            DeleteClass DeleteClassAsync CreateClassEnum CreateClassEnumAsync PutInstance PutInstanceAsync \
            DeleteInstance DeleteInstanceAsync CreateInstanceEnum CreateInstanceEnumAsync ExecQuery ExecQueryAsync \
            ExecNotificationQuery ExecNotificationQueryAsync ExecMethod ExecMethodAsync",
    },
    Interface {
        uuid: 0x99fcfec4_5260_101b_bbcb_00aa0021347a,
        name: "IObjectExporter",
        first: 0,
        operations: "ResolveOxid SimplePing ComplexPing ServerAlive ResolveOxid2 ServerAlive2",
    },
    Interface {
        uuid: 0xa4f1db00_ca47_1067_b31f_00dd010662da,
        name: "exchange_mapi",
        first: 0,
        operations: "EcDoConnect EcDoDisconnect EcDoRpc EcGetMoreRpc EcRRegisterPushNotification \
            EcRUnregisterPushNotification EcDummyRpc EcRGetDCName EcRNetGetDCName EcDoRpcExt EcDoConnectEx \
            EcDoRpcExt2",
    },
    Interface {
        uuid: 0xafa8bd80_7d8a_11c9_bef4_08002b102989,
        name: "mgmt",
        first: 0,
        operations: "inq_if_ids inq_stats is_server_listening stop_server_listening inq_princ_name",
    },
    Interface {
        uuid: 0xc681d488_d850_11d0_8c52_00c04fd90f7e,
        name: "efsrpc",
        first: 0,
        operations: "EfsRpcOpenFileRaw EfsRpcReadFileRaw EfsRpcWriteFileRaw EfsRpcCloseRaw EfsRpcEncryptFileSrv \
            EfsRpcDecryptFileSrv EfsRpcQueryUsersOnFile EfsRpcQueryRecoveryAgents EfsRpcRemoveUsersFromFile \
            EfsRpcAddUsersToFile",
    },
    Interface {
        uuid: 0xdf1941c5_fe89_4e79_bf10_463657acf44d,
        name: "efsrpc",
        first: 0,
        operations: "EfsRpcOpenFileRaw EfsRpcReadFileRaw EfsRpcWriteFileRaw EfsRpcCloseRaw EfsRpcEncryptFileSrv \
            EfsRpcDecryptFileSrv EfsRpcQueryUsersOnFile EfsRpcQueryRecoveryAgents EfsRpcRemoveUsersFromFile \
            EfsRpcAddUsersToFile",
    },
    Interface {
        uuid: 0xe1af8308_5d1f_11c9_91a4_08002b14a0fa,
        name: "epmapper",
        first: 0,
        operations: "ept_insert ept_delete ept_lookup ept_map ept_lookup_handle_free ept_inq_object ept_mgmt_delete",
    },
    Interface {
        uuid: 0xe3514235_4b06_11d1_ab04_00c04fc2dcd2,
        name: "drsuapi",
        first: 0,
        operations: "DRSBind DRSUnbind DRSReplicaSync DRSGetNCChanges DRSUpdateRefs DRSReplicaAdd DRSReplicaDel \
            DRSReplicaModify DRSVerifyNames DRSGetMemberships DRSInterDomainMove DRSGetNT4ChangeLog DRSCrackNames \
            DRSWriteSPN DRSRemoveDsServer DRSRemoveDsDomain DRSDomainControllerInfo DRSAddEntry DRSExecuteKCC \
            DRSGetReplInfo DRSAddSidHistory DRSGetMemberships2 DRSReplicaVerifyObjects DRSGetObjectExistence \
            DRSQuerySitesByCost DRSInitDemotion DRSReplicaDemotion DRSFinishDemotion DRSAddCloneDC",
    },
    Interface {
        uuid: 0xf309ad18_d86a_11d0_a075_00c04fb68820,
        name: "IWbemLevel1Login",
        first: 3,
        operations: "EstablishPosition RequestChallenge WBEMLogin NTLMLogin",
    },
    Interface {
        uuid: 0xf5cc5a18_4264_101a_8c59_08002b2f8426,
        name: "nspi",
        first: 0,
        operations: "NspiBind NspiUnbind NspiUpdateStat NspiQueryRows NspiSeekEntries NspiGetMatches NspiResortRestriction \
            NspiDNToMId NspiGetPropList NspiGetProps NspiCompareMIds NspiModProps NspiGetSpecialTable \
            NspiGetTemplateInfo NspiModLinkAtt NspiDeleteEntries NspiQueryColumns NspiGetNamesFromIDs \
            NspiGetIDsFromNames NspiResolveNames NspiResolveNamesW",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_names() {
        assert!(INTERFACES.is_sorted_by_key(|interface| interface.uuid));
        let name = |uuid, number| Interface::of(uuid).and_then(|interface| interface.operation(number));
        assert_eq!(name(0xe1af8308_5d1f_11c9_91a4_08002b14a0fa, 3), Some("ept_map"));
        assert_eq!(name(0xe1af8308_5d1f_11c9_91a4_08002b14a0fa, 99), None);
        // MS-SAMR, MS-LSAD, MS-NRPC, MS-SCMR, MS-WMI: the numbers of their last operations here.
        assert_eq!(name(0x12345778_1234_abcd_ef00_0123456789ac, 64), Some("SamrConnect5"));
        assert_eq!(name(0x12345778_1234_abcd_ef00_0123456789ab, 77), Some("LsarLookupNames4"));
        assert_eq!(name(0x12345678_1234_abcd_ef00_01234567cffb, 45), Some("NetrLogonSamLogonWithFlags"));
        assert_eq!(name(0x367abb81_9844_35f1_ad32_98f038001003, 45), Some("CreateServiceWOW64W"));
        assert_eq!(name(0x9556dc99_828c_11cf_a37e_00aa003240c7, 24), Some("ExecMethod"));
        assert_eq!(name(0x338cd001_2244_31f1_aaaa_900038001003, 35), Some("BaseRegDeleteKeyEx"));
        assert_eq!(name(0x4b324fc8_1670_01d3_1278_5a47bf6ee188, 53), Some("NetrServerTransportDelEx"));
    }
}

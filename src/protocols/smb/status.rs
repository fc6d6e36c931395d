//! Names of statuses, commands and kinds of SMB.

use crate::session::kit::names;

names! {
    /// Dialect. That of SMB 1 has the number 0x0100. A server of SMB 2 that answers a negotiation of SMB 1 leaves it open (`2.??`).
    pub struct Dialect: u16 {
        0x0100 => "NT LM 0.12", 0x0202 => "2.02", 0x0210 => "2.10", 0x02FF => "2.??", 0x0300 => "3.00", 0x0302 => "3.02",
        0x0311 => "3.11",
    }
}

names! {
    /// Command (MS-SMB2 section 2.2.1). Those of SMB 1 (MS-CIFS section 2.2.2.1) are 0x0100 and their number.
    pub struct Command: u16 {
        0 => "negotiate", 1 => "session_setup", 2 => "logoff", 3 => "tree_connect", 4 => "tree_disconnect", 5 => "create",
        6 => "close", 7 => "flush", 8 => "read", 9 => "write", 10 => "lock", 11 => "ioctl", 12 => "cancel", 13 => "echo",
        14 => "query_directory", 15 => "change_notify", 16 => "query_info", 17 => "set_info", 18 => "oplock_break",
        0x0100 => "smb1_create_directory", 0x0101 => "smb1_delete_directory", 0x0102 => "smb1_open", 0x0103 => "smb1_create",
        0x0104 => "smb1_close", 0x0105 => "smb1_flush", 0x0106 => "smb1_delete", 0x0107 => "smb1_rename",
        0x0108 => "smb1_query_information", 0x0109 => "smb1_set_information", 0x010A => "smb1_read", 0x010B => "smb1_write",
        0x0110 => "smb1_check_directory", 0x0124 => "smb1_locking_andx", 0x0125 => "smb1_trans", 0x0126 => "smb1_trans_secondary",
        0x012B => "smb1_echo", 0x012D => "smb1_open_andx", 0x012E => "smb1_read_andx", 0x012F => "smb1_write_andx",
        0x0132 => "smb1_trans2", 0x0133 => "smb1_trans2_secondary", 0x0134 => "smb1_find_close2",
        0x0171 => "smb1_tree_disconnect", 0x0172 => "smb1_negotiate", 0x0173 => "smb1_session_setup_andx",
        0x0174 => "smb1_logoff_andx", 0x0175 => "smb1_tree_connect_andx", 0x0180 => "smb1_query_information_disk",
        0x0181 => "smb1_search", 0x01A0 => "smb1_nt_trans", 0x01A1 => "smb1_nt_trans_secondary", 0x01A2 => "smb1_nt_create_andx",
        0x01A4 => "smb1_nt_cancel", 0x01A5 => "smb1_nt_rename",
    }
}

names! {
    /// Kind of a share (MS-SMB2 section 2.2.10).
    pub struct ShareType: u8 { 1 => "disk", 2 => "pipe", 3 => "print" }
}

names! {
    /// What a server does if a file exists, or does not (MS-SMB2 section 2.2.13).
    pub struct Disposition: u32 {
        0 => "supersede", 1 => "open", 2 => "create", 3 => "open_if", 4 => "overwrite", 5 => "overwrite_if",
    }
}

names! {
    /// What a server did with a file (MS-SMB2 section 2.2.14).
    pub struct CreateAction: u32 { 0 => "superseded", 1 => "opened", 2 => "created", 3 => "overwritten" }
}

names! {
    /// Cipher (MS-SMB2 section 2.2.3.1.2).
    pub struct Cipher: u16 { 1 => "aes_128_ccm", 2 => "aes_128_gcm", 3 => "aes_256_ccm", 4 => "aes_256_gcm" }
}

names! {
    /// Function of a control request (MS-SMB2 section 2.2.31, MS-FSCC section 2.3). Those of transactions (MS-CIFS section 2.2.6) have
    /// their number, and those of transactions of pipes (section 2.2.5) 0x0100 and their number.
    pub struct Function: u32 {
        0x0006_0194 => "get_dfs_referrals", 0x0006_01B0 => "get_dfs_referrals_ex", 0x0009_0018 => "lock_volume",
        0x0009_003C => "get_compression", 0x0009_0064 => "get_ntfs_volume_data", 0x0009_00A4 => "set_reparse_point",
        0x0009_00A8 => "get_reparse_point", 0x0009_00C0 => "create_or_get_object_id", 0x0009_00C4 => "set_sparse",
        0x0009_0284 => "query_file_regions", 0x0009_40CF => "query_allocated_ranges", 0x0009_80C8 => "set_zero_data",
        0x0009_8208 => "file_level_trim", 0x0009_8344 => "duplicate_extents", 0x0009_C040 => "set_compression",
        0x0011_0018 => "pipe_wait", 0x0011_400C => "pipe_peek", 0x0011_C017 => "pipe_transceive", 0x0014_0078 => "request_resume_key",
        0x0014_0204 => "validate_negotiate_info", 0x0014_01D4 => "lmr_request_resiliency", 0x0014_01FC => "query_network_interfaces",
        0x0014_4064 => "enumerate_snapshots", 0x0014_40F2 => "copy_chunk", 0x0014_80F2 => "copy_chunk_write",
        0x0014_41BB => "read_hash",
        1 => "find_first2", 2 => "find_next2", 3 => "query_fs_information", 4 => "set_fs_information", 5 => "query_path_information",
        6 => "set_path_information", 7 => "query_file_information", 8 => "set_file_information", 16 => "get_dfs_referral",
        0x0101 => "set_named_pipe_state", 0x0111 => "raw_read_named_pipe", 0x0121 => "query_named_pipe_state",
        0x0122 => "query_named_pipe_info", 0x0123 => "peek_named_pipe", 0x0126 => "transact_named_pipe",
        0x0131 => "raw_write_named_pipe", 0x0136 => "read_named_pipe", 0x0137 => "write_named_pipe", 0x0153 => "wait_named_pipe",
        0x0154 => "call_named_pipe",
    }
}

names! {
    /// Status of a response (MS-ERREF section 2.3.1); of servers of SMB 1 also the error of a class (MS-CIFS section 2.2.2.4).
    pub struct Status: u32 {
        0 => "STATUS_SUCCESS", 0x103 => "STATUS_PENDING", 0x104 => "STATUS_REPARSE", 0x105 => "STATUS_MORE_ENTRIES",
        0x10B => "STATUS_NOTIFY_CLEANUP", 0x10C => "STATUS_NOTIFY_ENUM_DIR", 0x8000_0005 => "STATUS_BUFFER_OVERFLOW",
        0x8000_0006 => "STATUS_NO_MORE_FILES", 0x8000_001A => "STATUS_NO_MORE_ENTRIES",
        0x8000_002D => "STATUS_STOPPED_ON_SYMLINK", 0xC000_0001 => "STATUS_UNSUCCESSFUL", 0xC000_0002 => "STATUS_NOT_IMPLEMENTED",
        0xC000_0003 => "STATUS_INVALID_INFO_CLASS", 0xC000_0004 => "STATUS_INFO_LENGTH_MISMATCH",
        0xC000_0008 => "STATUS_INVALID_HANDLE", 0xC000_000D => "STATUS_INVALID_PARAMETER", 0xC000_000E => "STATUS_NO_SUCH_DEVICE",
        0xC000_000F => "STATUS_NO_SUCH_FILE", 0xC000_0010 => "STATUS_INVALID_DEVICE_REQUEST", 0xC000_0011 => "STATUS_END_OF_FILE",
        0xC000_0016 => "STATUS_MORE_PROCESSING_REQUIRED", 0xC000_0022 => "STATUS_ACCESS_DENIED",
        0xC000_0023 => "STATUS_BUFFER_TOO_SMALL", 0xC000_0024 => "STATUS_OBJECT_TYPE_MISMATCH",
        0xC000_0033 => "STATUS_OBJECT_NAME_INVALID", 0xC000_0034 => "STATUS_OBJECT_NAME_NOT_FOUND",
        0xC000_0035 => "STATUS_OBJECT_NAME_COLLISION", 0xC000_0039 => "STATUS_OBJECT_PATH_INVALID",
        0xC000_003A => "STATUS_OBJECT_PATH_NOT_FOUND", 0xC000_003B => "STATUS_OBJECT_PATH_SYNTAX_BAD",
        0xC000_003E => "STATUS_DATA_ERROR", 0xC000_0043 => "STATUS_SHARING_VIOLATION", 0xC000_0044 => "STATUS_QUOTA_EXCEEDED",
        0xC000_004F => "STATUS_EAS_NOT_SUPPORTED", 0xC000_0054 => "STATUS_FILE_LOCK_CONFLICT",
        0xC000_0055 => "STATUS_LOCK_NOT_GRANTED", 0xC000_0056 => "STATUS_DELETE_PENDING", 0xC000_0061 => "STATUS_PRIVILEGE_NOT_HELD",
        0xC000_0064 => "STATUS_NO_SUCH_USER", 0xC000_006A => "STATUS_WRONG_PASSWORD", 0xC000_006D => "STATUS_LOGON_FAILURE",
        0xC000_006E => "STATUS_ACCOUNT_RESTRICTION", 0xC000_006F => "STATUS_INVALID_LOGON_HOURS",
        0xC000_0070 => "STATUS_INVALID_WORKSTATION", 0xC000_0071 => "STATUS_PASSWORD_EXPIRED",
        0xC000_0072 => "STATUS_ACCOUNT_DISABLED", 0xC000_0073 => "STATUS_NONE_MAPPED", 0xC000_007E => "STATUS_RANGE_NOT_LOCKED",
        0xC000_007F => "STATUS_DISK_FULL", 0xC000_009A => "STATUS_INSUFFICIENT_RESOURCES",
        0xC000_00A2 => "STATUS_MEDIA_WRITE_PROTECTED", 0xC000_00A5 => "STATUS_BAD_IMPERSONATION_LEVEL",
        0xC000_00AB => "STATUS_INSTANCE_NOT_AVAILABLE", 0xC000_00AC => "STATUS_PIPE_NOT_AVAILABLE",
        0xC000_00AD => "STATUS_INVALID_PIPE_STATE", 0xC000_00AE => "STATUS_PIPE_BUSY", 0xC000_00B0 => "STATUS_PIPE_DISCONNECTED",
        0xC000_00B1 => "STATUS_PIPE_CLOSING", 0xC000_00B3 => "STATUS_PIPE_LISTENING", 0xC000_00B5 => "STATUS_IO_TIMEOUT",
        0xC000_00BA => "STATUS_FILE_IS_A_DIRECTORY", 0xC000_00BB => "STATUS_NOT_SUPPORTED",
        0xC000_00C3 => "STATUS_INVALID_NETWORK_RESPONSE", 0xC000_00C9 => "STATUS_NETWORK_NAME_DELETED",
        0xC000_00CA => "STATUS_NETWORK_ACCESS_DENIED", 0xC000_00CB => "STATUS_BAD_DEVICE_TYPE",
        0xC000_00CC => "STATUS_BAD_NETWORK_NAME", 0xC000_00D0 => "STATUS_REQUEST_NOT_ACCEPTED",
        0xC000_00D4 => "STATUS_NOT_SAME_DEVICE", 0xC000_00D5 => "STATUS_FILE_RENAMED", 0xC000_0101 => "STATUS_DIRECTORY_NOT_EMPTY",
        0xC000_0103 => "STATUS_NOT_A_DIRECTORY", 0xC000_011F => "STATUS_TOO_MANY_OPENED_FILES", 0xC000_0120 => "STATUS_CANCELLED",
        0xC000_0121 => "STATUS_CANNOT_DELETE", 0xC000_0123 => "STATUS_FILE_DELETED", 0xC000_0128 => "STATUS_FILE_CLOSED",
        0xC000_014B => "STATUS_PIPE_BROKEN", 0xC000_015B => "STATUS_LOGON_TYPE_NOT_GRANTED",
        0xC000_018B => "STATUS_NO_TRUST_SAM_ACCOUNT", 0xC000_0190 => "STATUS_TRUST_FAILURE",
        0xC000_0192 => "STATUS_NETLOGON_NOT_STARTED", 0xC000_0193 => "STATUS_ACCOUNT_EXPIRED",
        0xC000_0203 => "STATUS_USER_SESSION_DELETED", 0xC000_0205 => "STATUS_INSUFF_SERVER_RESOURCES",
        0xC000_020C => "STATUS_CONNECTION_DISCONNECTED", 0xC000_020D => "STATUS_CONNECTION_RESET",
        0xC000_0224 => "STATUS_PASSWORD_MUST_CHANGE", 0xC000_0225 => "STATUS_NOT_FOUND",
        0xC000_0233 => "STATUS_DOMAIN_CONTROLLER_NOT_FOUND", 0xC000_0234 => "STATUS_ACCOUNT_LOCKED_OUT",
        0xC000_0257 => "STATUS_PATH_NOT_COVERED", 0xC000_0275 => "STATUS_NOT_A_REPARSE_POINT",
        0xC000_035C => "STATUS_NETWORK_SESSION_EXPIRED", 0xC000_0388 => "STATUS_DOWNGRADE_DETECTED",
        0xC000_0413 => "STATUS_AUTHENTICATION_FIREWALL_FAILED",
        0x0001_0001 => "DOS_BADFUNC", 0x0002_0001 => "DOS_BADFILE", 0x0003_0001 => "DOS_BADPATH", 0x0005_0001 => "DOS_NOACCESS",
        0x0006_0001 => "DOS_BADFID", 0x0012_0001 => "DOS_NOFILES", 0x0020_0001 => "DOS_BADSHARE", 0x0050_0001 => "DOS_FILEXISTS",
        0x00EA_0001 => "DOS_MOREDATA",
        0x0001_0002 => "SRV_ERROR", 0x0002_0002 => "SRV_BADPW", 0x0004_0002 => "SRV_ACCESS", 0x0005_0002 => "SRV_BADTID",
        0x0006_0002 => "SRV_INVNETNAME", 0x005B_0002 => "SRV_BADUID",
    }
}

/// Status of a logon that continues.
pub(super) const MORE_PROCESSING_REQUIRED: Status = Status(0xC000_0016);
/// Status of a response whose octets do not fit.
pub(super) const BUFFER_OVERFLOW: Status = Status(0x8000_0005);
/// The same as an error of a class.
pub(super) const MORE_DATA: Status = Status(0x00EA_0001);
